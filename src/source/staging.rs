//! Private directories for the bundles of remote sources, and what killed runs left of them.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Code, Error, Result};
use crate::path::escape;

/// Where they lie unless the configuration or `STATE_DIRECTORY` names a place.
const DEFAULT: &str = "/var/tmp";
/// What their names begin with: nothing else is ever swept.
const PREFIX: &str = "distributor-fetch-";
/// Held by the process that a directory belongs to, for as long as it lives.
const LOCK: &str = "lock";
/// How often another run may sweep away a directory that is being made, and not locked yet.
const PATIENCE: usize = 50;

/// The place of one pipeline's fetched bundles. What was made there goes when this is dropped.
pub struct Staging {
    place: Option<PathBuf>,
    held: Mutex<Option<Held>>,
}

/// A directory that is there, and locked.
struct Held {
    path: PathBuf,
    bundles: usize,
    /// Keeps the lock.
    _lock: File,
}

impl Staging {
    /// A place below `place`, or else below `/var/tmp`. Nothing is made there before it is needed. What runs left that
    /// were killed is swept away.
    pub fn new(place: Option<&Path>) -> Staging {
        let staging = Staging { place: place.map(Path::to_owned), held: Mutex::default() };
        // Whether the place is any good is told once it is needed.
        if let Ok(place) = trusted(staging.place.as_deref().unwrap_or(Path::new(DEFAULT))) {
            sweep(&place);
        }
        staging
    }

    /// A new directory for one bundle, which nobody else may look into.
    pub(super) fn directory(&self) -> Result<PathBuf> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = match &mut *held {
            Some(held) => held,
            none => none.insert(Held::below(&self.place()?)?),
        };
        held.bundles += 1;
        let path = held.path.join(held.bundles.to_string());
        make(&path).map_err(|error| fail(&path, &error))?;
        Ok(path)
    }

    fn place(&self) -> Result<PathBuf> {
        self.place.as_deref().map_or_else(|| trusted(Path::new(DEFAULT)), prepared)
    }
}

impl Held {
    fn below(place: &Path) -> Result<Held> {
        for _ in 0..PATIENCE {
            let made = tempfile::Builder::new().prefix(PREFIX).rand_bytes(12).tempdir_in(place);
            let made = made.map_err(|error| fail(place, &error))?;
            match locked(made.path()) {
                Ok(Some(lock)) => return Ok(Held { path: made.keep(), bundles: 0, _lock: lock }),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(fail(made.path(), &error)),
            }
        }
        let message = format!("{}: what is made there goes at once", shown(place));
        Err(Error::new(Code::StorageError, message).hint("name another place with staging_directory"))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // What can't be removed now is swept by the next run.
        let _ = remove(&self.path);
    }
}

/// Makes a new directory private and locks it; `None` where another run took it for a leftover meanwhile.
fn locked(dir: &Path) -> io::Result<Option<File>> {
    fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    let lock = create(&dir.join(LOCK))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let there = fs::symlink_metadata(dir.join(LOCK))?;
    Ok((there.ino() == lock.metadata()?.ino()).then_some(lock))
}

/// Removes what runs left in `place` that are gone. What fails is left to the next one.
fn sweep(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_own = || entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == user());
        if !name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) || !is_own() {
            continue;
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::open(path.join(LOCK), flags, Mode::empty()).map(File::from) {
            Ok(lock) if lock.try_lock().is_ok() => drop(remove(&path)),
            // Killed before the lock was there, or after it was gone: nothing else is in it.
            Err(Errno::NOENT) => drop(fs::remove_dir(&path)),
            _ => {}
        }
    }
}

/// Removes a directory, its lock last: until then others know whose it is.
fn remove(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != LOCK {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(dir.join(LOCK))?;
    fs::remove_dir(dir)
}

/// The configured place; what is missing of it is made, for this user alone.
fn prepared(place: &Path) -> Result<PathBuf> {
    let (Some(above), Some(name)) = (place.parent(), place.file_name()) else { return trusted(place) };
    match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = prepared(above)?.join(name);
            match make(&path) {
                // Another run was faster, or somebody else.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => trusted(&path),
                made => made.map(|()| path.clone()).map_err(|error| fail(&path, &error)),
            }
        }
        _ => trusted(place),
    }
}

/// The place itself, where nobody but this user and root can put something else in its stead, or move what is made in it:
/// neither there nor in a directory above it.
fn trusted(place: &Path) -> Result<PathBuf> {
    let ours = |uid: u32| uid == 0 || uid == user();
    let look = |path: &Path| fs::symlink_metadata(path).map_err(|error| fail(path, &error));
    let link = look(place)?;
    if link.is_symlink() && !ours(link.uid()) {
        return Err(refused(place, "a link of another user stands there"));
    }
    let real = fs::canonicalize(place).map_err(|error| fail(place, &error))?;
    for dir in real.ancestors() {
        let meta = look(dir)?;
        if !meta.is_dir() {
            return Err(fail(dir, &io::ErrorKind::NotADirectory.into()));
        }
        if !ours(meta.uid()) {
            return Err(refused(place, &format!("{} belongs to another user", shown(dir))));
        }
        if meta.mode() & 0o022 != 0 && meta.mode() & 0o1000 == 0 {
            return Err(refused(place, &format!("others may write to {} (chmod go-w)", shown(dir))));
        }
    }
    Ok(real)
}

fn refused(place: &Path, why: &str) -> Error {
    Error::new(Code::PermissionDenied, format!("staging directory {}: {why}", shown(place)))
        .hint("name one with staging_directory that only its owner may write to")
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes a directory for this user alone, whatever the umask.
fn make(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(0o700))
}

/// Creates a file for this user alone, whatever the umask.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// The error of a call on `path` in the staging directory.
pub(super) fn fail(path: &Path, error: &io::Error) -> Error {
    placed(Error::io(shown(path), error))
}

/// An error of the staging directory, with the cure for it.
pub(super) fn placed(error: Error) -> Error {
    match error.code {
        Code::NoSpace => error.hint("free some space there, or name another place with staging_directory"),
        // By that code a destination tells that something else stands in its place.
        Code::NotADirectory => {
            Error { code: Code::StorageError, ..error }.hint("name a directory with staging_directory")
        }
        _ => error,
    }
}

fn shown(path: &Path) -> String {
    escape(path.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, lchown, symlink};

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_killed_runs_left_is_swept_and_nothing_else() {
        let scene = tempfile::tempdir().unwrap();
        let place = scene.path();
        let leftover = |name: &str| {
            let dir = place.join(name);
            fs::create_dir_all(dir.join("1/sub")).unwrap();
            fs::write(dir.join("1/sub/file"), "x").unwrap();
            dir
        };
        fs::write(leftover("distributor-fetch-dead").join(LOCK), "").unwrap();
        fs::write(leftover("distributor-other").join(LOCK), "").unwrap();
        fs::write(leftover("precious").join(LOCK), "").unwrap();
        // Nobody can know whose it is.
        leftover("distributor-fetch-odd");
        fs::create_dir(place.join("distributor-fetch-young")).unwrap();
        symlink("precious", place.join("distributor-fetch-link")).unwrap();
        let linked = leftover("distributor-fetch-lock");
        symlink("../precious/lock", linked.join(LOCK)).unwrap();
        let living = Staging::new(Some(place));
        let at = living.directory().unwrap();
        fs::write(at.join("file"), "x").unwrap();
        drop(Staging::new(Some(place)));
        assert!(at.join("file").exists(), "one that is held is left alone");
        let own = at.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let left = [
            "distributor-fetch-link",
            "distributor-fetch-lock",
            "distributor-fetch-odd",
            "distributor-other",
            "precious",
        ];
        assert_eq!(names(place).into_iter().filter(|name| *name != own).collect::<Vec<_>>(), left);
        drop(living);
        assert_eq!(names(place), left);
        assert_eq!(names(&place.join("precious")), ["1", LOCK]);
    }

    #[test]
    fn nothing_is_made_before_it_is_needed() {
        let scene = tempfile::tempdir().unwrap();
        let place = scene.path().join("a/b");
        let staging = Staging::new(Some(&place));
        assert!(!scene.path().join("a").exists());
        let (one, two) = (staging.directory().unwrap(), staging.directory().unwrap());
        assert!(one.is_dir() && two.is_dir() && one != two);
        drop(staging);
        assert!(names(&place).is_empty());
    }

    /// Why nothing is staged there.
    fn refused(place: &Path) -> String {
        let error = Staging::new(Some(place)).directory().unwrap_err();
        assert_eq!(error.code, Code::PermissionDenied, "{error:?}");
        assert!(error.hint.is_some());
        error.message
    }

    #[test]
    fn a_place_that_others_may_change_is_refused_with_all_above_it() {
        let scene = tempfile::tempdir().unwrap();
        let place = scene.path().join("a/b");
        fs::create_dir_all(&place).unwrap();
        for dir in [&place, &scene.path().join("a")] {
            for mode in [0o777, 0o770, 0o702] {
                fs::set_permissions(dir, Permissions::from_mode(mode)).unwrap();
                assert!(refused(&place).contains(&format!("others may write to {} ", dir.display())));
            }
            fs::set_permissions(dir, Permissions::from_mode(0o1777)).unwrap();
            Staging::new(Some(&place)).directory().unwrap();
        }
        assert!(names(&place).is_empty());
    }

    #[test]
    fn what_another_user_planted_is_refused() {
        let scene = tempfile::tempdir().unwrap();
        let (real, link) = (scene.path().join("real"), scene.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink("real", &link).unwrap();
        Staging::new(Some(&link)).directory().unwrap();
        // Only root can make what is somebody else's.
        if user() != 0 {
            return;
        }
        lchown(&link, Some(65534), None).unwrap();
        assert!(refused(&link).ends_with("a link of another user stands there"));
        assert!(refused(&link.join("below")).contains("a link of another user"), "nor is anything made behind it");
        chown(&real, Some(65534), None).unwrap();
        assert!(refused(&real).contains("belongs to another user"));
        assert!(refused(&real.join("below")).contains("belongs to another user"));
        let theirs = scene.path().join("distributor-fetch-theirs");
        fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(65534), None).unwrap();
        drop(Staging::new(Some(scene.path())));
        assert!(theirs.exists() && names(&real).is_empty());
    }

    #[test]
    fn a_file_is_no_place() {
        let scene = tempfile::tempdir().unwrap();
        let file = scene.path().join("file");
        fs::write(&file, "").unwrap();
        for place in [file.clone(), file.join("below")] {
            let error = Staging::new(Some(&place)).directory().unwrap_err();
            assert_eq!((error.code, error.hint.is_some()), (Code::StorageError, true), "{error}");
        }
    }
}
