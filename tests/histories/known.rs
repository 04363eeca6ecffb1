//! Histories that went wrong once, with the run cut short at every call.

use distributor::config::{OnConflict, OnNewer, OnOlder, Reconciliation, TakeoverMode};

use crate::mortal::End;
use crate::place::{Disk, Objects};
use crate::play::play;
use crate::steps::{Ask, Bundle, Edit, History, Step, Thing};

/// More than the calls of any run here.
const CALLS: usize = 45;

fn usual() -> Ask {
    Ask {
        bundle: 0,
        owner: 0,
        older: OnOlder::Replace,
        newer: OnNewer::Skip,
        conflict: OnConflict::Fail,
        reconciliation: Reconciliation::Replace,
        takeover: TakeoverMode::Never,
        force: false,
        republish: false,
        broken: false,
    }
}

fn put(path: &'static str) -> Step {
    Step::Edit(Edit::Put { path, thing: Thing::File, over: false })
}

/// Plays `before`, a run of `ask` that is cut short, and `after`, for every call and on both kinds of places.
fn cut_everywhere(bundles: &[Bundle], before: &[Step], ask: &Ask, after: &[Step]) {
    for end in [End::KilledBefore, End::KilledAfter, End::Fails] {
        for at in 1..CALLS {
            let cut = vec![Step::Cut { ask: ask.clone(), at, end }];
            let history = History { bundles: bundles.to_vec(), steps: [before, &cut, after].concat() };
            play(&history, &Disk::new());
            play(&history, &Objects::default());
        }
    }
}

#[test]
fn a_dry_run_knows_what_a_forced_run_that_was_cut_short_takes_away_and_what_it_does_not() {
    let bundles = [Bundle::of(0, &["a", "d/x.css"])];
    let forced = Ask { force: true, ..usual() };
    let taken_over = Ask { owner: 1, takeover: TakeoverMode::Managed, ..usual() };
    for next in [usual(), taken_over] {
        let after = [Step::Run { ask: next, look: true }];
        cut_everywhere(&bundles, &[put("a"), put("own/x")], &forced, &after);
    }
}

#[test]
fn a_directory_that_gives_way_to_an_output_does_so_once_what_hands_put_there_is_moved_aside() {
    let bundles = [Bundle::of(0, &["a/b"]), Bundle::of(2, &["A/b", "a"])];
    let first = [Step::Run { ask: usual(), look: false }];
    let newer = Ask { bundle: 1, ..usual() };
    let after = [put("a/own"), Step::Run { ask: newer.clone(), look: true }];
    cut_everywhere(&bundles, &first, &newer, &after);
}
