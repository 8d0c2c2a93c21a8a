package coordinator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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
	Tried            bool   `json:"-"` // what it can do was tried; else the four above say nothing
}

// MarshalJSON leaves out what was not tried.
func (f FileSystem) MarshalJSON() ([]byte, error) {
	type known FileSystem
	if f.Tried {
		return json.Marshal(known(f))
	}
	return json.Marshal(struct {
		known
		ExclusiveRename *bool `json:"exclusive_rename,omitempty"` // these hide those of the file system
		HardLinks       *bool `json:"hard_links,omitempty"`
		Allocation      *bool `json:"allocation,omitempty"`
		DirectIO        *bool `json:"direct_io,omitempty"`
	}{known: known(f)})
}

// family is the type without a FUSE file system's subtype.
func (f FileSystem) family() string {
	family, _, _ := strings.Cut(f.Type, ".")
	return family
}

// heldFileSystem adds what this package alone needs.
type heldFileSystem struct {
	FileSystem
	nameMax   int   // the longest name in bytes
	filesLeft int64 // how many more files it can hold; -1 where unknown, or where it has no such limit
}

// probeFileSystem finds out what the file system can do by doing it, on a file that is thrown away: what a file system
// says of itself is not enough. What cannot be done is no error, but a file that cannot be made or given space for any
// other reason is one, and so is a file that cannot be taken away.
//
// Another run that wins the output meanwhile sweeps the probes away, because nobody seems to hold them. That is no
// answer about the file system, so the probing begins again, under other names.
// unnamed says why a file cannot be given a name here without replacing what may have it; nil: it can.
func probeFileSystem(ctx context.Context, d *directory, names stem, found *FileSystem) (unnamed, err error) {
	for range probeAttempts {
		p := prober{dir: d, stem: names}
		swept, err := p.probe(ctx, found)
		if err != nil || !swept {
			found.Tried = err == nil
			return p.unnamed(), err
		}
	}
	return nil, nil
}

// probeAttempts bounds the probing: a sweep is rare, and each run sweeps once.
const probeAttempts = 20

// probe probes under names of its own; swept says that somebody took them away.
func (p *prober) probe(ctx context.Context, found *FileSystem) (swept bool, err error) {
	var id [jobIDDigits / 2]byte
	rand.Read(id[:])
	p.id = hex.EncodeToString(id[:])
	f, err := p.dir.create(p.name(0), 0o600)
	if err != nil {
		return false, createFailure(p.dir, beside(p.dir.path, p.name(0)), err)
	}
	defer func() { err = joined(joined(err, p.remove()), closeNamed(f)) }()
	reserved := reserve(ctx, f, 0, max(found.BlockBytes, 4096))
	found.Allocation = reserved == nil || isOutOfSpace(reserved) // on a full disk it has the call all the same
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case !found.Allocation && !isUnsupported(reserved):
		return false, fileFailure("fallocate", f.Name(), reserved)
	}
	found.DirectIO, found.DirectAlignBytes = p.directIO(0)
	p.linked = p.dir.link(p.name(0), p.name(1))
	p.renamed = p.dir.renameExclusive(p.name(0), p.name(2))
	found.HardLinks, found.ExclusiveRename = p.linked == nil, p.renamed == nil
	return errors.Is(p.linked, fs.ErrNotExist) || errors.Is(p.renamed, fs.ErrNotExist), nil
}

// prober knows the names that one probing uses, and what came of the two ways to give a file its final name.
type prober struct {
	dir  *directory
	stem stem
	id   string

	linked, renamed error
}

// unnamed is why there is no way, if there is none.
func (p *prober) unnamed() error {
	if p.linked == nil || p.renamed == nil {
		return nil
	}
	return fmt.Errorf("link: %w, exclusive rename: %w", p.linked, p.renamed)
}

const probeNames = 3

func (p *prober) name(i int) string { return p.stem.probe(p.id, i) }

func (p *prober) remove() error {
	var failed error
	for i := range probeNames {
		if err := p.dir.remove(p.name(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = joined(failed, fileFailure("unlink", beside(p.dir.path, p.name(i)), err))
		}
	}
	return failed
}
