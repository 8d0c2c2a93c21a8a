package coordinator

import (
	"context"
	"encoding/hex"
	"hash/crc32"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"lukechampine.com/blake3/guts"

	"gigafizz/layout"
)

// Digests are checksums of a whole file, as other programs compute them.
type Digests struct {
	CRC32C uint32   // Castagnoli, as object stores use it
	BLAKE3 [32]byte // as b3sum prints it
}

// BLAKE3Hex writes the BLAKE3 digest as b3sum does.
func (d Digests) BLAKE3Hex() string { return hex.EncodeToString(d.BLAKE3[:]) }

const (
	// digestWindowBytes is generated and hashed at a time by one thread: it stays in that core's second-level cache, and
	// is a whole number of digestGroupBytes.
	digestWindowBytes = 256 << 10
	// digestStretchesMax bounds the memory of a Digest for any size, and is far more than any machine has threads.
	digestStretchesMax = 4096
)

// Digest computes the checksums of the file that l describes without reading or writing any, on as many goroutines as
// threads says (at least 1). Its memory does not grow with the file. It calls progress, unless that is nil, with the
// bytes done since the last call, from one goroutine at a time. When ctx is cancelled it ends within the time of one
// window on each thread, with context.Cause(ctx).
//
// The file is cut into stretches that are aligned subtrees of BLAKE3's tree; threads take one after the other, and the
// results are joined. Both joins are exact, so the answer does not depend on the cut.
func Digest(ctx context.Context, l *layout.Layout, threads int, progress func(bytes int64)) (Digests, error) {
	cut := digestCut(l.Size())
	parts := make([]stretchDigest, len(cut))
	var next atomic.Int64
	var mu sync.Mutex // held while progress runs
	report := func(n int64) {
		if progress != nil {
			mu.Lock()
			defer mu.Unlock()
			progress(n)
		}
	}
	var g errgroup.Group
	for range min(max(threads, 1), len(cut)) {
		g.Go(func() error {
			window := make([]byte, digestWindowBytes)
			for i := next.Add(1) - 1; i < int64(len(cut)); i = next.Add(1) - 1 {
				d := stretchDigest{extent: cut[i]}
				if err := d.compute(ctx, l, window, report); err != nil {
					next.Store(int64(len(cut)))
					return err
				}
				parts[i] = d
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return Digests{}, err
	}
	return joinStretches(parts), nil
}

// digestCut cuts a file into at most digestStretchesMax stretches of one power of two, the last one shorter. An empty
// file is one empty stretch.
func digestCut(sizeBytes int64) []layout.Extent {
	stretch := int64(digestWindowBytes)
	for sizeBytes/stretch >= digestStretchesMax {
		stretch *= 2
	}
	cut := []layout.Extent{{Len: min(stretch, sizeBytes)}}
	for left := sizeBytes - cut[0].Len; left > 0; left -= cut[len(cut)-1].Len {
		cut = append(cut, layout.Extent{Off: sizeBytes - left, Len: min(stretch, left)})
	}
	return cut
}

// stretchDigest is what is kept of one stretch: a few dozen bytes, however long it is.
type stretchDigest struct {
	extent layout.Extent
	crc    uint32
	node   guts.Node
}

// compute generates the stretch window by window.
func (d *stretchDigest) compute(ctx context.Context, l *layout.Layout, window []byte, report func(bytes int64)) error {
	h := newBlake3Stretch(d.extent.Off)
	castagnoli := crc32.MakeTable(crc32.Castagnoli) // the library's own: it computes with the processor's instruction
	for off := d.extent.Off; off < d.extent.End(); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p := window[:min(digestWindowBytes, d.extent.End()-off)]
		l.Fill(p, off)
		d.crc = crc32.Update(d.crc, castagnoli, p)
		h.write(p)
		off += int64(len(p))
		report(int64(len(p)))
	}
	d.node = h.node()
	return nil
}

// joinStretches joins the stretches of a whole file, in order.
func joinStretches(parts []stretchDigest) Digests {
	var d Digests
	var tree blake3Tree
	last := len(parts) - 1
	for _, p := range parts[:last] {
		d.CRC32C = joinCRC32C(d.CRC32C, p.crc, p.extent.Len)
		tree.push(guts.ChainingValue(p.node))
	}
	d.CRC32C = joinCRC32C(d.CRC32C, parts[last].crc, parts[last].extent.Len)
	d.BLAKE3 = blake3Root(tree.join(parts[last].node))
	return d
}
