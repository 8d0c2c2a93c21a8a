package worker

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pageOutlet puts pages into a pipe instead of bytes: vmsplice(2) has the pipe refer to the pages that hold a chunk, and
// nobody copies them before the consumer does, if it does.
//
// A pipe that refers to pages shows whatever they hold when they are read at last. How long that takes nobody can know:
// the consumer may splice or tee them onward, into pipes that it enlarges at will, so no ring of buffers is long enough to
// be used again (measured: every published program that does so gives wrong bytes to such a consumer). So no page that was
// handed over is ever stored into again. When all of a chunk was handed over, MADV_DONTNEED takes its pages out of this
// process; the pipes keep them for as long as they refer to them, and the next store gets new, zeroed ones. That costs less
// than a copy if the pages are huge ones, of 2 MiB, and more if they are small; so a chunk is exactly one huge page. The
// chunk of a content that repeats is filled once, and never given away at all.
//
// The Go heap is never handed over: the collector would use it again.
type pageOutlet struct {
	pipe    syscall.RawConn
	flags   int
	mapping []byte   // all of the memory, and what aligns it
	chunks  [][]byte // what nobody has taken yet

	// One call at a time, without an allocation for each.
	iov   []unix.Iovec
	try   func(fd uintptr) bool
	taken int
	err   error
}

// The sizes of huge pages that serve as chunks. On arm64 with pages of 64 KiB a huge page has 512 MiB.
const (
	hugeBytesMin = 1 << 20
	hugeBytesMax = 4 << 20
)

// openOutlet opens the outlet that is fastest for out, with memory for so many chunks. Chunks of small pages have
// smallBytes, where there are no huge ones; 0 if small pages do not serve.
func openOutlet(out io.Writer, chunks, smallBytes int) outlet {
	chunkBytes := cmp.Or(hugePageBytes(os.DirFS("/sys/kernel/mm/transparent_hugepage")), smallBytes)
	if chunkBytes > 0 {
		if o := openPages(out, chunks, chunkBytes); o != nil {
			return o
		}
	}
	return copyOutlet{out}
}

// hugePageBytes is the size of the huge pages that a mapping may have where it asks for them; 0 if it may not, or if they
// are no chunks.
func hugePageBytes(dir fs.FS) int {
	enabled, err := fs.ReadFile(dir, "enabled")
	if err != nil || bytes.Contains(enabled, []byte("[never]")) {
		return 0
	}
	text, err := fs.ReadFile(dir, "hpage_pmd_size")
	if err != nil {
		return 0
	}
	size, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || size < hugeBytesMin || size > hugeBytesMax || size&(size-1) != 0 {
		return 0
	}
	return size
}

// openPages returns nil where out is no pipe, or the system does not do what has to be relied on.
func openPages(out io.Writer, chunks, chunkBytes int) *pageOutlet {
	conn, ok := out.(syscall.Conn)
	if !ok {
		return nil
	}
	o := &pageOutlet{iov: make([]unix.Iovec, 1)}
	o.try = o.splice
	var err error
	if o.pipe, err = conn.SyscallConn(); err != nil || !o.takesPages() {
		return nil
	}
	o.mapping, err = unix.Mmap(-1, 0, (chunks+1)*chunkBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil
	}
	adviseHuge(o.mapping)
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(o.mapping))) % uintptr(chunkBytes))
	for range chunks {
		o.chunks = append(o.chunks, o.mapping[at:at+chunkBytes:at+chunkBytes])
		at += chunkBytes
	}
	if !renews(o.chunks[0]) {
		_ = o.close() // nothing of it was handed over
		return nil
	}
	return o
}

// takesPages says whether out is a pipe that takes pages, and finds out how it waits.
func (o *pageOutlet) takesPages() bool {
	takes := false
	err := o.pipe.Control(func(fd uintptr) {
		var st unix.Stat_t
		if err := unix.Fstat(int(fd), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
			return
		}
		mode, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if err != nil {
			return
		}
		if mode&unix.O_NONBLOCK != 0 {
			o.flags = unix.SPLICE_F_NONBLOCK
		}
		_, err = unix.Vmsplice(int(fd), nil, o.flags) // of nothing: an error where there is no such call
		takes = err == nil
	})
	return err == nil && takes
}

// renews says whether a page that is given away comes back as another one. Emulators are known to keep it.
func renews(p []byte) bool {
	p[0] = 1
	return unix.Madvise(p, unix.MADV_DONTNEED) == nil && p[0] == 0
}

// send hands over pages, as many as the pipe has room for.
func (o *pageOutlet) send(p []byte) (int, error) {
	o.iov[0].Base = unsafe.SliceData(p)
	o.iov[0].SetLen(len(p))
	o.taken, o.err = 0, nil
	if err := o.pipe.Write(o.try); err != nil { // as its deadline has come
		return 0, err
	}
	return o.taken, os.NewSyscallError("vmsplice", o.err)
}

// splice is one call; false asks to be called again when there is room.
func (o *pageOutlet) splice(fd uintptr) bool {
	o.taken, o.err = unix.Vmsplice(int(fd), o.iov, o.flags)
	if o.err != nil {
		o.taken = 0
	}
	return !errors.Is(o.err, unix.EAGAIN)
}

// fresh gives the pages of a chunk away, and gets others where they are touched next.
func (o *pageOutlet) fresh(sent []byte) ([]byte, error) {
	if sent == nil {
		memory := o.chunks[0]
		o.chunks = o.chunks[1:]
		return memory, nil
	}
	err := retryInterrupted(func() error { return unix.Madvise(sent, unix.MADV_DONTNEED) })
	if err != nil {
		return nil, fmt.Errorf("give pages away: %w", err)
	}
	return sent, nil
}

func (o *pageOutlet) close() error {
	if err := unix.Munmap(o.mapping); err != nil {
		return fmt.Errorf("unmap: %w", err)
	}
	return nil
}
