package coordinator

import (
	"math/bits"

	"lukechampine.com/blake3/guts"
)

// digestGroupBytes is how much BLAKE3 compresses in one call: one chunk of 1 KiB in each lane of the widest vectors.
const digestGroupBytes = guts.MaxSIMD * guts.ChunkSize

// blake3Tree joins subtrees of equal size, from left to right, into the tree of BLAKE3 (section 2.1 of its paper). Its
// stack holds one complete subtree for every bit set in count, the largest at the bottom.
type blake3Tree struct {
	stack [54][8]uint32 // enough for 2^64 bytes in chunks
	count uint64
}

// push adds a complete subtree that is not the last one. The trailing ones of count are the subtrees that it completes.
func (t *blake3Tree) push(cv [8]uint32) {
	height := bits.TrailingZeros64(^t.count)
	for _, left := range t.stack[:height] {
		cv = guts.ChainingValue(guts.ParentNode(left, cv, &guts.IV, 0))
	}
	t.stack[height] = cv
	t.count++
}

// join adds the last subtree, which may be shorter than the others, and returns the node of all. Only a last one is not
// compressed yet: if nothing stands before it, it is the root.
func (t *blake3Tree) join(last guts.Node) guts.Node {
	for left := t.count; left != 0; left &= left - 1 {
		height := bits.TrailingZeros64(left)
		last = guts.ParentNode(t.stack[height], guts.ChainingValue(last), &guts.IV, 0)
	}
	return last
}

// blake3Root is the digest of a file whose tree has this node at its top.
func blake3Root(n guts.Node) [32]byte {
	n.Flags |= guts.FlagRoot
	out := guts.WordsToBytes(guts.CompressNode(n))
	return [32]byte(out[:32])
}

// blake3Stretch hashes one stretch of a file. The stretch begins at a multiple of its size, so it is a subtree.
type blake3Stretch struct {
	tree  blake3Tree
	chunk uint64    // the number in the file of the next chunk
	last  guts.Node // the latest group: it is pushed only when another follows
	some  bool      // whether there is a latest group
}

func newBlake3Stretch(off int64) *blake3Stretch {
	return &blake3Stretch{chunk: uint64(off) / guts.ChunkSize}
}

// write adds bytes. All writes but the last are a whole number of groups.
func (h *blake3Stretch) write(p []byte) {
	for len(p) > 0 {
		if h.some {
			h.tree.push(guts.ChainingValue(h.last))
		}
		n := min(len(p), digestGroupBytes)
		h.last, h.some = compressGroup(p[:n], h.chunk), true
		h.chunk += digestGroupBytes / guts.ChunkSize
		p = p[n:]
	}
}

// node returns the node of everything written; of an empty file, that of an empty chunk.
func (h *blake3Stretch) node() guts.Node {
	if !h.some {
		return guts.CompressChunk(nil, &guts.IV, 0, 0)
	}
	return h.tree.join(h.last)
}

// compressGroup returns the node of at most digestGroupBytes bytes. The assembly reads a whole group whatever the length.
func compressGroup(p []byte, chunk uint64) guts.Node {
	if len(p) == digestGroupBytes {
		return guts.CompressBuffer((*[digestGroupBytes]byte)(p), len(p), &guts.IV, chunk, 0)
	}
	var group [digestGroupBytes]byte
	copy(group[:], p)
	return guts.CompressBuffer(&group, len(p), &guts.IV, chunk, 0)
}
