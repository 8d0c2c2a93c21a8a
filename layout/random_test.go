package layout_test

import (
	"bytes"
	"compress/flate"
	"crypto/aes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"

	"gigafizz/layout"
)

// naiveRandom is the documented definition, block by block.
func naiveRandom(seed uint64, off int64, length int) []byte {
	key := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("gigafizz random 1"), seed))
	block, err := aes.NewCipher(key[:16])
	if err != nil {
		panic(err)
	}
	var b []byte
	for i := uint64(off) / 16; len(b) < length+16; i++ {
		var in, out [16]byte
		binary.BigEndian.PutUint64(in[8:], i)
		block.Encrypt(out[:], in[:])
		b = append(b, out[:]...)
	}
	return b[off%16 : int(off%16)+length]
}

func TestRandomBytesAreAsDocumentedAtAnyOffset(t *testing.T) {
	for _, seed := range []uint64{0, 1, math.MaxUint64} {
		l := mustNew(t, layout.Spec{Kind: layout.KindRandom, Seed: seed, Bytes: math.MaxInt64})
		for _, off := range []int64{0, 1, 15, 16, 17, 1 << 31, 1<<32 - 5, 1<<40 + 3, math.MaxInt64 - 100} {
			for _, length := range []int{0, 1, 15, 16, 17, 100} {
				got := make([]byte, length)
				l.Fill(got, off)
				requireEqual(t, "random", got, naiveRandom(seed, off, length))
			}
		}
		long := make([]byte, 100_000)
		l.Fill(long[:33_333], 12_345)
		l.Fill(long[33_333:], 12_345+33_333)
		requireEqual(t, "random", long, naiveRandom(seed, 12_345, len(long)))
	}
}

func TestRandomBytesNeverChange(t *testing.T) {
	l := mustNew(t, layout.Spec{Kind: layout.KindRandom, Seed: 42, Bytes: 16})
	got := make([]byte, 16)
	l.Fill(got, 0)
	const want = "ea983282e52ae93cb84f73252fa0b801" // by openssl enc -aes-128-ctr
	if hex.EncodeToString(got) != want {
		t.Fatalf("seed 42 begins with %x, want %s: GeneratorVersion must change with it", got, want)
	}
}

func TestRandomBytesDoNotCompress(t *testing.T) {
	l := mustNew(t, layout.Spec{Kind: layout.KindRandom, Bytes: 1 << 20})
	p := make([]byte, l.Size())
	l.Fill(p, 0)
	var compressed bytes.Buffer
	w, err := flate.NewWriter(&compressed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(p); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if compressed.Len() < len(p) {
		t.Errorf("%d random bytes compress to %d", len(p), compressed.Len())
	}
}

func TestSeedsGiveDifferentBytes(t *testing.T) {
	seen := map[string]uint64{}
	for seed := range uint64(100) {
		l := mustNew(t, layout.Spec{Kind: layout.KindRandom, Seed: seed, Bytes: 16})
		p := make([]byte, 16)
		l.Fill(p, 0)
		if other, ok := seen[string(p)]; ok {
			t.Errorf("seeds %d and %d begin alike", seed, other)
		}
		seen[string(p)] = seed
	}
}
