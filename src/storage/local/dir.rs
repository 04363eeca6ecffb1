//! Directory handles: every open, make and remove goes through one, and none follows a symbolic link.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

use crate::path::RawPath;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// `NONBLOCK`, so that opening a FIFO without a writer returns.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const CREATE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open directory.
pub(super) struct Dir(OwnedFd);

/// A name in a directory and what it is.
pub(super) struct Name {
    pub(super) bytes: Vec<u8>,
    pub(super) kind: FileType,
}

impl Dir {
    /// Opens a root. A symbolic link that stands for the root itself is resolved, here and only here.
    pub(super) fn open_root(path: &Path) -> io::Result<Dir> {
        Ok(Dir(rustix::fs::open(path, DIRECTORY, Mode::empty())?))
    }

    /// Opens a directory below this one.
    pub(super) fn open_dir(&self, path: impl AsRef<[u8]>) -> io::Result<Dir> {
        Ok(Dir(self.open_below(path.as_ref(), DIRECTORY | OFlags::NOFOLLOW)?))
    }

    /// Opens what should be a regular file below this directory for reading; `None` where it is anything else.
    pub(super) fn open_file(&self, path: &str) -> io::Result<Option<File>> {
        let file = match self.open_below(path.as_bytes(), READ) {
            Ok(fd) => File::from(fd),
            // A link somewhere (LOOP), a socket (NXIO), or a device without its driver (NODEV).
            Err(Errno::LOOP | Errno::NXIO | Errno::NODEV) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let regular = file.metadata()?.is_file();
        Ok(regular.then_some(file))
    }

    fn open_below(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.0, path, flags, Mode::empty(), resolve) {
            // A kernel before 5.6, or a container's filter in its place.
            Err(Errno::NOSYS | Errno::PERM) => self.walk(path, flags),
            result => result,
        }
    }

    /// What openat2 does, a segment at a time.
    fn walk(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut dir: Option<OwnedFd> = None;
        let at = path.iter().rposition(|byte| *byte == b'/');
        let (parents, name) = at.map_or((&[][..], path), |at| (&path[..at], &path[at + 1..]));
        if path.split(|byte| *byte == b'/').any(|segment| segment == b"..") {
            return Err(Errno::XDEV);
        }
        for segment in parents.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty()) {
            let at = dir.as_ref().unwrap_or(&self.0);
            let next = rustix::fs::openat(at, segment, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
            // With NOFOLLOW a link is "not a directory".
            dir = Some(next.map_err(|error| if error == Errno::NOTDIR { self.link_or_not(path) } else { error })?);
        }
        rustix::fs::openat(dir.as_ref().unwrap_or(&self.0), name, flags, Mode::empty())
    }

    fn link_or_not(&self, path: &[u8]) -> Errno {
        let is_link = |dir: &[u8]| {
            rustix::fs::statat(&self.0, dir, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
        };
        if RawPath::from(path.to_vec()).ancestors().any(is_link) { Errno::LOOP } else { Errno::NOTDIR }
    }

    /// Opens the directory `path`, making what is missing of it with exactly `mode`; says how many levels were made.
    pub(super) fn make_dir(&self, path: &str, mode: u32) -> io::Result<(Dir, usize)> {
        match self.open_dir(path) {
            Ok(dir) => Ok((dir, 0)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (above, name, made) = match path.rsplit_once('/') {
                    Some((parent, name)) => {
                        let (dir, made) = self.make_dir(parent, mode)?;
                        (Some(dir), name, made)
                    }
                    None => (None, path, 0),
                };
                let above = above.as_ref().unwrap_or(self);
                let made = made + usize::from(above.make_one(name, mode)?);
                Ok((above.open_dir(name)?, made))
            }
            Err(error) => Err(error),
        }
    }

    /// Makes one directory with exactly `mode`, whatever the umask; `false` where it was there already.
    pub(super) fn make_one(&self, name: &str, mode: u32) -> io::Result<bool> {
        match rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(mode & 0o700)) {
            Ok(()) => {
                let made = self.open_dir(name)?;
                rustix::fs::fchmod(&made.0, Mode::from_raw_mode(mode))?;
                Ok(true)
            }
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a file that must not be there, with exactly `mode`. `name` may lie in a directory of a stage.
    pub(super) fn create(&self, name: &str, mode: u32) -> io::Result<File> {
        let file = File::from(rustix::fs::openat(&self.0, name, CREATE, Mode::from_raw_mode(0o600))?);
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        Ok(file)
    }

    /// Opens a lock file, and creates it where it is not there. What is no file counts as a directory.
    pub(super) fn open_lock(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(0o600))?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::ISDIR.into()) }
    }

    /// Locks a file unless somebody else has; the lock ends with the file.
    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether somebody holds the lock on a file. Who looks holds it for a moment, shared: a publisher that comes just
    /// then asks again.
    pub(super) fn is_locked(file: &File) -> io::Result<bool> {
        match rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether `name` is this very file.
    pub(super) fn is_same(&self, name: &str, file: &File) -> io::Result<bool> {
        let (here, there) = (rustix::fs::fstat(file)?, rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW));
        match there {
            Ok(there) => Ok((here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The mount it lies in, so that a bind mount is another one too; where the kernel (before 5.8) does not tell, the
    /// file system.
    pub(super) fn mount(&self) -> io::Result<u64> {
        match rustix::fs::statx(&self.0, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID) {
            Ok(stat) if stat.stx_mask & StatxFlags::MNT_ID.bits() != 0 => Ok(stat.stx_mnt_id),
            _ => Ok(rustix::fs::fstat(&self.0)?.st_dev),
        }
    }

    /// Whether this process may make and remove names in it.
    pub(super) fn is_writable(&self) -> io::Result<bool> {
        let access = Access::WRITE_OK | Access::EXEC_OK;
        match rustix::fs::accessat(&self.0, ".", access, AtFlags::EACCESS) {
            Err(Errno::ACCESS | Errno::ROFS) => Ok(false),
            // A kernel or library that can't ask so: the names will tell.
            Ok(()) | Err(Errno::NOSYS | Errno::INVAL) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether two names are one file.
    pub(super) fn same(&self, name: &str, other: &Dir, its: &str) -> io::Result<bool> {
        let stat = |dir: &Dir, name: &str| rustix::fs::statat(&dir.0, name, AtFlags::SYMLINK_NOFOLLOW);
        match (stat(self, name), stat(other, its)) {
            (Ok(a), Ok(b)) => Ok((a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)),
            (Err(Errno::NOENT), _) | (_, Err(Errno::NOENT)) => Ok(false),
            (Err(error), _) | (_, Err(error)) => Err(error.into()),
        }
    }

    /// Makes the names in this directory durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }

    /// Makes everything on this file system durable.
    pub(super) fn sync_all(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.0)?)
    }

    /// Gives the file `from` of this directory the name `to` in `into`, replacing a file of that name.
    pub(super) fn rename(&self, from: &str, into: &Dir, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &into.0, to)?)
    }

    /// The same, where no file of that name may be there.
    pub(super) fn rename_new(&self, from: &str, into: &Dir, to: &str) -> io::Result<()> {
        match rustix::fs::renameat_with(&self.0, from, &into.0, to, rustix::fs::RenameFlags::NOREPLACE) {
            // A file system or kernel without the flag: a hard link refuses a name that is taken just as well.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(&self.0, from, &into.0, to, AtFlags::empty())?;
                Ok(rustix::fs::unlinkat(&self.0, from, AtFlags::empty())?)
            }
            result => Ok(result?),
        }
    }

    /// Removes a file; one that is gone, with a directory in its place or not, is fine.
    pub(super) fn remove_file(&self, name: impl AsRef<[u8]>) -> io::Result<()> {
        let name = name.as_ref();
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => Ok(()),
            // Some file systems, and POSIX, say so instead.
            Err(Errno::PERM) if self.kind(name)? == Some(FileType::Directory) => Ok(()),
            result => gone_is_fine(result),
        }
    }

    /// Removes a directory if it is empty; `false` where it is not, or is no directory at all.
    pub(super) fn remove_dir(&self, name: impl AsRef<[u8]>) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.0, name.as_ref(), AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::BUSY) => Ok(false),
            result => gone_is_fine(result).map(|()| true),
        }
    }

    /// What the name is, `None` where there is none.
    pub(super) fn kind(&self, name: impl AsRef<[u8]>) -> io::Result<Option<FileType>> {
        match rustix::fs::statat(&self.0, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The names in the directory, `.` and `..` left out.
    pub(super) fn names(&self) -> io::Result<impl Iterator<Item = io::Result<Name>>> {
        let entries = rustix::fs::Dir::read_from(&self.0)?;
        let fd = self.0.as_fd().try_clone_to_owned()?;
        let dots = |name: &[u8]| name == b"." || name == b"..";
        Ok(entries.filter(move |entry| entry.as_ref().map_or(true, |e| !dots(e.file_name().to_bytes()))).map(
            move |entry| {
                let entry = entry?;
                let mut kind = entry.file_type();
                if kind == FileType::Unknown {
                    let stat = rustix::fs::statat(&fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                    kind = FileType::from_raw_mode(stat.st_mode);
                }
                Ok(Name { bytes: entry.file_name().to_bytes().to_vec(), kind })
            },
        ))
    }

    /// Opens a directory by its raw name, as [`Dir::names`] gave it.
    pub(super) fn open_named(&self, name: &[u8]) -> io::Result<Dir> {
        Ok(Dir(rustix::fs::openat(&self.0, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?))
    }

    /// Removes all that lies in the directory, however deep. For stages alone.
    pub(super) fn clear(&self) -> io::Result<()> {
        let names: Vec<Name> = self.names()?.collect::<io::Result<_>>()?;
        for name in names {
            let flags = if name.kind == FileType::Directory {
                self.open_named(&name.bytes)?.clear()?;
                AtFlags::REMOVEDIR
            } else {
                AtFlags::empty()
            };
            gone_is_fine(rustix::fs::unlinkat(&self.0, name.bytes.as_slice(), flags))?;
        }
        Ok(())
    }
}

fn gone_is_fine(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        result => Ok(result?),
    }
}
