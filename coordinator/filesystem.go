package coordinator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
)

// FileSystem is what is known of the file system that holds an output.
type FileSystem struct {
	// Type is "ext4", "xfs", "btrfs", "zfs", "tmpfs", "nfs", "cifs", "9p", "overlay", "fuse" or "fuse.SUBTYPE" and the
	// like; the magic number in hex where it has no name here; "unknown" where the platform does not tell.
	Type             string `json:"type"`
	MountPoint       string `json:"mount_point,omitempty"`
	MountOptions     string `json:"mount_options,omitempty"`
	Device           string `json:"device,omitempty"`
	BlockBytes       int64  `json:"block_bytes"`
	FreeBytes        int64  `json:"free_bytes"` // available to us, not to root; -1 where unknown
	ExclusiveRename  bool   `json:"exclusive_rename"`
	HardLinks        bool   `json:"hard_links"`
	Allocation       bool   `json:"allocation"` // whether space can be reserved (fallocate)
	DirectIO         bool   `json:"direct_io"`
	DirectAlignBytes int64  `json:"direct_align_bytes,omitempty"`
}

// family is the type without a FUSE file system's subtype.
func (f FileSystem) family() string {
	family, _, _ := strings.Cut(f.Type, ".")
	return family
}

// heldFileSystem adds what this package alone needs.
type heldFileSystem struct {
	FileSystem
	nameMax int // the longest name in bytes
}

// probeFileSystem finds out what the file system can do by doing it, on a file that is thrown away: what a file system
// says of itself is not enough. What cannot be done is no error, but a file that cannot be made or given space for any
// other reason is one, and so is a file that cannot be taken away.
func probeFileSystem(ctx context.Context, d *directory, names stem, found *FileSystem) (err error) {
	var id [jobIDDigits / 2]byte
	rand.Read(id[:])
	p := prober{dir: d, stem: names, id: hex.EncodeToString(id[:])}
	f, err := d.create(p.name(0), 0o600)
	if err != nil {
		return fileFailure("create", beside(d.path, p.name(0)), err)
	}
	defer func() {
		err = joined(err, p.remove())
		if closed := f.Close(); closed != nil {
			err = joined(err, fileFailure("close", f.Name(), closed))
		}
	}()
	reserved := reserve(ctx, f, 0, max(found.BlockBytes, 4096))
	found.Allocation = reserved == nil || isOutOfSpace(reserved) // on a full disk it has the call all the same
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !found.Allocation && !isUnsupported(reserved):
		return fileFailure("fallocate", f.Name(), reserved)
	}
	found.DirectIO, found.DirectAlignBytes = p.directIO(0)
	found.HardLinks = d.link(p.name(0), p.name(1)) == nil
	found.ExclusiveRename = d.renameExclusive(p.name(0), p.name(2)) == nil
	return nil
}

// prober knows the names that one probing uses.
type prober struct {
	dir  *directory
	stem stem
	id   string
}

const probeNames = 3

func (p prober) name(i int) string { return p.stem.probe(p.id, i) }

func (p prober) remove() error {
	var failed error
	for i := range probeNames {
		if err := p.dir.remove(p.name(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = fileFailure("unlink", beside(p.dir.path, p.name(i)), err)
		}
	}
	return failed
}
