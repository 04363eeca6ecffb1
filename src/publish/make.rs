//! Outputs that are made, and the source files that they are made of.

use super::Publication;
use crate::bundle::{finding, invalid_bundle, read_file, verify_files};
use crate::digest::Fingerprint;
use crate::error::Result;
use crate::host::Cancel;
use crate::plan::Plan;
use crate::pool;
use crate::state::OutputKind;
use crate::storage::{Body, Job, Make, Storage};
use crate::transform::{Output, Pages, unused};

/// Makes one output.
pub(super) struct Making<'a> {
    pages: &'a Pages<'a>,
    output: &'a Output,
    source: &'a dyn Storage,
    cancel: &'a Cancel,
}

impl Make for Making<'_> {
    fn make(&self) -> Result<Vec<u8>> {
        let source = read_file(self.source, self.pages.source(self.output)?, self.cancel)?;
        self.pages.make(self.output, &source)
    }
}

impl Publication<'_> {
    /// What the outputs of `plan` are made with.
    pub(super) fn pages<'a>(&'a self, plan: &'a Plan) -> Pages<'a> {
        let outputs = plan.outputs.iter().map(|planned| &planned.output);
        Pages::of(self.wanted.manifest, self.wanted.destination, outputs)
    }

    /// One for each output of `plan`, in its order; copies need none.
    pub(super) fn makings<'a>(&'a self, plan: &'a Plan, pages: &'a Pages<'a>) -> Vec<Making<'a>> {
        let source = self.source.place();
        let making = |output| Making { pages, output, source, cancel: self.world.cancel };
        plan.outputs.iter().map(|planned| making(&planned.output)).collect()
    }

    /// The jobs that stage the outputs. Before they are `made` nobody knows what the generated ones are.
    pub(super) fn jobs<'a>(&'a self, makings: &'a [Making<'a>], made: bool) -> Vec<Job<'a>> {
        let source = self.source.place();
        let job = |making: &'a Making<'a>| {
            let output = making.output;
            let (body, known) = match output.kind {
                OutputKind::Source => (Body::File(source, &output.source_path), true),
                OutputKind::Generated => (Body::Made(making), made),
            };
            Job { path: &output.path, expected: known.then_some(output.content), body }
        };
        makings.iter().map(job).collect()
    }

    /// Makes the generated outputs of a plan that is only looked at, so that it tells what they will be.
    pub fn preview(&self, plan: &mut Plan) -> Result<()> {
        let pages = self.pages(plan);
        let makings = self.makings(plan, &pages);
        let results = pool::map(pool::cores(), &makings, |making| match making.output.kind {
            OutputKind::Source => Ok(making.output.content),
            OutputKind::Generated => making.make().map(|bytes| Fingerprint::of(&bytes)),
        });
        self.world.cancel.check()?;
        let contents = Self::whole(&makings, results)?;
        drop(makings);
        plan.made(contents);
        Ok(())
    }

    /// All of `results`, or the error of a bundle that is not as it should be.
    pub(super) fn whole<T>(makings: &[Making<'_>], results: Vec<Result<T>>) -> Result<Vec<T>> {
        let (mut good, mut details) = (Vec::with_capacity(results.len()), Vec::new());
        for (making, result) in makings.iter().zip(results) {
            match result {
                Ok(content) => good.push(content),
                Err(error) => details.push(finding(&making.output.source_path, error)),
            }
        }
        invalid_bundle(details).map_or(Ok(good), Err)
    }

    /// Checks the files of the bundle that no output comes from.
    pub(super) fn check_unused(&self, plan: &Plan) -> Result<()> {
        let outputs: Vec<&Output> = plan.outputs.iter().map(|planned| &planned.output).collect();
        let files = unused(self.wanted.manifest, &outputs);
        invalid_bundle(verify_files(self.source.place(), &files, self.world.cancel)?).map_or(Ok(()), Err)
    }
}
