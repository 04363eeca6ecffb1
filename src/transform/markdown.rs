use crate::config::MarkdownToHtml;
use crate::path::RelPath;
use crate::timestamp::Timestamp;
pub(crate) struct Page<'a> {
    pub(crate) source_path: &'a RelPath,
    pub(crate) output_path: &'a RelPath,
    pub(crate) created: &'a Timestamp,
    pub(crate) bundle_id: &'a str,
    pub(crate) settings: &'a MarkdownToHtml,
    pub(crate) output_of: &'a dyn Fn(&str) -> Option<&'a RelPath>,
}
pub(crate) struct NotUtf8 {
    pub(crate) at: usize,
}
pub(crate) fn render(markdown: &[u8], _page: &Page<'_>) -> Result<Vec<u8>, NotUtf8> {
    match std::str::from_utf8(markdown) {
        Ok(_) => Ok([b"<p>", markdown].concat()),
        Err(e) => Err(NotUtf8 { at: e.valid_up_to() }),
    }
}
pub(crate) fn output_path(source: &RelPath) -> Option<RelPath> {
    RelPath::parse(&format!("{}.html", source.as_str().rsplit_once('.').map_or(source.as_str(), |p| p.0))).ok()
}
