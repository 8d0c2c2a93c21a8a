package coordinator

import (
	"golang.org/x/sys/unix"
)

// refuseImmovable refuses what the kernel would refuse at the very end: a rename in a directory that gives no name up,
// and one over a file that keeps its own (statx(2), FS_IOC_GETFLAGS(2const), may_delete in the kernel's fs/namei.c).
// A file system that does not tell is believed to allow it.
func (o *output) refuseImmovable() error {
	dir, ok := attributesOf(o.dir.fd(), "", unix.AT_EMPTY_PATH)
	if ok {
		if flag := keptBy(&dir); flag != "" {
			return immovable(o.path, "its directory keeps every name as it is (chattr +"+flag+")", "chattr -"+flag+" "+ShellWord(o.dir.path))
		}
	}
	if o.request.existing != ExistingReplace {
		return nil
	}
	file, stands := attributesOf(o.dir.fd(), o.name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	if !stands {
		return nil
	}
	if flag := keptBy(&file); flag != "" {
		return immovable(o.path, "the file that stands there cannot be replaced (chattr +"+flag+")", "chattr -"+flag+" "+ShellWord(o.path))
	}
	if file.Attributes_mask&file.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		f := immovable(o.path, "the file that stands there is a mount point", "name another file, or umount "+ShellWord(o.path))
		f.Errno = "EBUSY"
		return f
	}
	me := uint32(unix.Geteuid())
	if ok && dir.Mode&unix.S_ISVTX != 0 && dir.Uid != me && file.Uid != me && !overrulesOwners() {
		return immovable(o.path, "the file that stands there is somebody else's, and in this directory only its owner may replace it (the sticky bit)",
			"name another file, or let its owner remove it")
	}
	return nil
}

func immovable(path, reason, hint string) *Failure {
	f := refused("open", path, reason, hint)
	f.Errno = "EPERM"
	return f
}

// attributesOf is what statx tells of a name, if it tells anything.
func attributesOf(dirFD int, name string, flags int) (unix.Statx_t, bool) {
	var st unix.Statx_t
	err := retryEINTR(func() error { return unix.Statx(dirFD, name, flags, unix.STATX_MODE|unix.STATX_UID, &st) })
	return st, err == nil
}

// keptBy is the letter of chattr(1) that keeps a file or a directory's names as they are, if one does.
func keptBy(st *unix.Statx_t) string {
	switch set := st.Attributes & st.Attributes_mask; {
	case set&unix.STATX_ATTR_IMMUTABLE != 0:
		return "i"
	case set&unix.STATX_ATTR_APPEND != 0:
		return "a"
	}
	return ""
}

// overrulesOwners tells whether this thread may act on files as if they were its own (CAP_FOWNER, capabilities(7)).
// Where that cannot be found out it may, and the rename decides.
func overrulesOwners() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return true
	}
	return sets[0].Effective&(1<<unix.CAP_FOWNER) != 0
}
