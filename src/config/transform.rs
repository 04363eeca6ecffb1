//! `transforms`.

use std::path::Path;

use super::field::{At, Context};
use super::model::{MarkdownToHtml, Template, Transform};
use super::pattern::Pattern;
use super::ssh::optional;
use crate::error::{Code, Warning};

/// What a template may ask for.
const PLACEHOLDERS: &[&str] = &["title", "content", "source_path", "created", "bundle_id"];
const TYPES: &[&str] = &["markdown_to_html"];

pub(super) fn transforms(at: &At, cx: &mut Context) -> Option<Vec<Transform>> {
    let all: Vec<_> = at.list(cx)?.iter().map(|item| transform(item, cx)).collect();
    all.into_iter().collect()
}

fn transform(at: &At, cx: &mut Context) -> Option<Transform> {
    let table = at.section(&["type", "match", "raw_html", "template"], cx)?;
    let known = table.need("type", cx).and_then(|at| at.one_of(TYPES, cx));
    let patterns = table.get("match").map_or_else(default_patterns, |at| at.patterns(cx));
    let raw_html = table.choice("raw_html", cx);
    let template = optional(table.get("template"), |at| template(&at, cx));
    known?;
    Some(Transform::MarkdownToHtml(MarkdownToHtml { patterns: patterns?, raw_html: raw_html?, template: template? }))
}

fn default_patterns() -> Option<Vec<Pattern>> {
    ["*.md", "*.markdown"].into_iter().map(|text| Pattern::parse(text).ok()).collect()
}

fn template(at: &At, cx: &mut Context) -> Option<Template> {
    let path = at.path(cx)?;
    let text = match (cx.world.read)(&path).map(String::from_utf8) {
        Ok(Ok(text)) if text.len() > super::parse::MAX_SIZE => {
            cx.report.add(&at.spot, format!("template {} is larger than 1 MiB", path.display()));
            return None;
        }
        Ok(Ok(text)) => text,
        Ok(Err(_)) => {
            cx.report.add(&at.spot, format!("template {} is not UTF-8", path.display()));
            return None;
        }
        Err(error) => {
            cx.report.add(&at.spot, format!("template {}", crate::error::Error::io(path.display(), &error)));
            return None;
        }
    };
    let known = refuse_unknown(&text, &path, at, cx);
    if known && placeholders(&text).all(|(_, name)| name != "content") {
        let message = format!(
            "{}: template {} has no {{{{content}}}}, and its pages none of their text: put it where the text goes",
            at.spot.place,
            path.display()
        );
        cx.report.warnings.push(Warning::new(Code::TemplateWithoutContent, message));
    }
    known.then_some(Template { path, text })
}

/// Says which placeholders are unknown, each once; whether there are none.
fn refuse_unknown(text: &str, path: &Path, at: &At, cx: &mut Context) -> bool {
    let mut said: Vec<&str> = Vec::new();
    for (begin, name) in placeholders(text).filter(|(_, name)| !PLACEHOLDERS.contains(name)) {
        if said.contains(&name) {
            continue;
        }
        said.push(name);
        let line = text[..begin].matches('\n').count() + 1;
        let message = format!("template {}, line {line}: unknown placeholder {{{{{name}}}}}", path.display());
        let hint = match crate::suggest::nearest(name, PLACEHOLDERS.iter().copied()) {
            Some(near) => format!("did you mean {{{{{near}}}}}?"),
            None => format!("known are {}", PLACEHOLDERS.join(", ")),
        };
        cx.report.add_with(&at.spot, message, hint);
    }
    said.is_empty()
}

/// The names between `{{` and `}}`, trimmed, each with where it begins.
fn placeholders(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let named = |at: usize| Some((at, text[at + 2..].split("{{").next()?.split_once("}}")?.0.trim()));
    text.match_indices("{{").filter_map(move |(at, _)| named(at))
}

#[cfg(test)]
mod tests {
    #[test]
    fn placeholders_are_found() {
        let found: Vec<_> = super::placeholders("}} {{a}} { {{ b }} }} {{d {{e}} {{c").collect();
        assert_eq!(found, [(3, "a"), (11, "b"), (26, "e")]);
    }
}
