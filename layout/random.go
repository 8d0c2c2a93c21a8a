package layout

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
)

// random is the content of KindRandom: the key stream of AES-128 in counter mode, which no storage compresses. The byte
// at an offset is a pure function of the seed and that offset:
//
//	key         the first 16 bytes of SHA-256("gigafizz random 1" + the seed as 8 bytes, big-endian)
//	bytes 16i   to 16i+15: AES-128 under that key of i as 16 bytes, big-endian
//
// so `openssl enc -aes-128-ctr` with that key and an initial counter of zero makes the same file from zeros.
type random struct {
	bytes   int64
	block   cipher.Block
	streams sync.Pool // of *keystream; each keeps its place, so going on where it ended costs nothing
}

func newRandom(seed uint64, bytes int64) (*random, error) {
	if bytes < 0 {
		return nil, errors.New("the size is negative")
	}
	key := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("gigafizz random 1"), seed))
	block, err := aes.NewCipher(key[:16])
	if err != nil {
		return nil, err
	}
	r := &random{bytes: bytes, block: block}
	r.streams.New = func() any { return &keystream{off: -1} }
	return r, nil
}

func (r *random) size() int64 { return r.bytes }

func (r *random) fill(p []byte, off int64, _ storing) {
	s := r.streams.Get().(*keystream)
	defer r.streams.Put(s)
	if s.off != off {
		s.seek(r.block, off)
	}
	s.read(p)
}

// keystream is a cipher stream and its place. The standard library's streams only go forward, so seeking makes a new one.
type keystream struct {
	stream cipher.Stream
	off    int64
}

func (s *keystream) seek(block cipher.Block, off int64) {
	var counter, skipped [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[8:], uint64(off)/aes.BlockSize)
	s.stream, s.off = cipher.NewCTR(block, counter[:]), off
	s.stream.XORKeyStream(skipped[:], skipped[:off%aes.BlockSize])
}

// read clears and encrypts in pieces that stay in the first-level cache.
func (s *keystream) read(p []byte) {
	s.off += int64(len(p))
	for len(p) > 0 {
		piece := p[:min(len(p), 8<<10)]
		clear(piece)
		s.stream.XORKeyStream(piece, piece)
		p = p[len(piece):]
	}
}
