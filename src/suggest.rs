//! "Did you mean …?"

/// The known name nearest to `typed`, if one is near enough to be meant.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = typed.chars().count().max(3) / 3;
    known
        .into_iter()
        .map(|name| (distance(typed, name), name))
        .filter(|(far, _)| *far <= limit)
        .min()
        .map(|(_, name)| name)
}

/// How many letters to insert, delete, replace or swap (optimal string alignment distance).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["transfer", "takeover", "state", "path"];
        assert_eq!(nearest("transfr", known), Some("transfer"));
        assert_eq!(nearest("trasnfer", known), Some("transfer"));
        assert_eq!(nearest("paht", known), Some("path"));
        assert_eq!(nearest("policy", known), None);
        assert_eq!(nearest("", known), None);
    }
}
