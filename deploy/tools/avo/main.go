// Command avo writes the assembly of package layout: layout/stencil_amd64.s and the declarations beside it. It is run by
// `go generate ./layout`, and .ci/run compares what it writes with what is committed.
package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	vectorBytes = 32
	unrolled    = 4 // vectors of the inner loop; of 1, 2 and 4, 1 depends on where the linker puts it
)

// The bits of CPUID and XGETBV that together say that the processor has AVX2 and the system keeps its registers.
const (
	leaf1OSXSAVE  = 1 << 27 // ECX
	leaf1AVX      = 1 << 28 // ECX
	leaf7AVX2     = 1 << 5  // EBX
	xcr0XMMAndYMM = 1<<1 | 1<<2
)

func main() {
	ConstraintExpr("amd64,!purego")
	hasAVX2()
	c := newConstants()
	kernel{
		name: "stencilStore",
		doc: []string{
			"stencilStore writes whole vectors of 32 bytes of text to to, with digits put in, from pos in run on. It leaves in digits, and",
			"returns, where it stopped.",
		},
		finish: func(v reg.VecVirtual, to Mem) { VMOVDQU(v, to) },
	}.emit(c)
	kernel{
		name: "stencilStoreUncached",
		doc: []string{
			"stencilStoreUncached is stencilStore with stores that bypass the caches. to must be aligned to 32 bytes. They are visible to",
			"other processors, in the order of the program, when it returns.",
		},
		finish: func(v reg.VecVirtual, to Mem) { VMOVNTDQ(v, to) },
		after:  SFENCE,
	}.emit(c)
	matching(c)
	lines()
	spell()
	Generate()
}

// matching is the kernel that compares instead of storing.
func matching(c constants) {
	k := kernel{
		name: "stencilMatch",
		doc: []string{
			"stencilMatch is stencilStore, but compares what it would write with what is at to, and says whether all of it is equal.",
		},
		result: ", equal bool",
	}
	var all reg.VecVirtual
	k.before = func() {
		all = YMM()
		VPCMPEQB(all, all, all)
	}
	k.finish = func(v reg.VecVirtual, to Mem) {
		VPCMPEQB(to, v, v)
		VPAND(v, all, all)
	}
	k.after = func() {
		equal := GP32()
		VPMOVMSKB(all, equal)
		CMPL(equal, I32(-1))
		result := GP8()
		SETEQ(result)
		Store(result, Return("equal"))
	}
	k.emit(c)
}

// lines is the small loop for pieces of one run, which are too short for the kernels' preparations and their branches: how
// often it repeats is all that a processor has to guess.
func lines() {
	TEXT("stencilLines", attr.NOSPLIT, "func(to *byte, bytes int, text *byte, table *[16]byte, escape byte)")
	Doc(
		"stencilLines writes text to to, with the bytes of table put in: at least bytes bytes, of which there is one, and less than",
		"128 more. They lie in one run, or what is behind it does not matter.",
	)
	Pragma("noescape")
	to := Load(Param("to"), GP64())
	bytes := Load(Param("bytes"), GP64())
	text := Load(Param("text"), GP64())
	escape, table := YMM(), YMM()
	VPBROADCASTB(address("escape"), escape)
	VBROADCASTI128(Mem{Base: Load(Param("table"), GP64())}, table)
	some := func(at Mem, to Mem) {
		for off := 0; off < unrolled*vectorBytes; off += vectorBytes {
			v, index := YMM(), YMM()
			VMOVDQU(at.Offset(off), v)
			VPSUBUSB(escape, v, index)
			VPSHUFB(index, table, index)
			VPADDB(index, v, v)
			VMOVDQU(v, to.Offset(off))
		}
	}
	Comment("The first vectors are where they must be, the others are aligned.")
	some(Mem{Base: text}, Mem{Base: to})
	at := GP64()
	MOVQ(to, at)
	ANDQ(U8(vectorBytes-1), at)
	SUBQ(I32(unrolled*vectorBytes), at)
	NEGQ(at)
	CMPQ(at, bytes)
	JGE(LabelRef("done"))
	Label("more")
	some(Mem{Base: text, Index: at, Scale: 1}, Mem{Base: to, Index: at, Scale: 1})
	ADDQ(I32(unrolled*vectorBytes), at)
	CMPQ(at, bytes)
	JLT(LabelRef("more"))
	Label("done")
	VZEROUPPER()
	RET()
}

// spell is the loop of dense: a record costs no branch, whether it is a number or words.
func spell() {
	TEXT("spellLines", attr.NOSPLIT, "func(to *byte, masks *uint16, records int, lines *[16]byte, numbers *byte, line int) (done, bytes int)")
	Doc(
		"spellLines writes a line for each of masks to to: of lines, or the next of numbers, each of line bytes, where the mask is 0.",
		"It stops before a line that is too long for lines, and returns how many it wrote and their bytes. It reads and writes up to",
		"32 bytes more.",
	)
	Pragma("noescape")
	begin := Load(Param("to"), GP64())
	masks := Load(Param("masks"), GP64())
	records := Load(Param("records"), GP64())
	lines := Load(Param("lines"), GP64())
	number := Load(Param("numbers"), GP64())
	line := Load(Param("line"), GP64())
	to, at := GP64(), GP64()
	MOVQ(begin, to)
	TESTQ(records, records)
	JZ(LabelRef("none"))
	LEAQ(Mem{Base: masks, Index: records, Scale: 2}, masks)
	MOVQ(records, at)
	NEGQ(at)
	record := func(off, bytes int, tooLong string) {
		text, length := GP64(), GP64()
		MOVWLZX(Mem{Base: masks, Index: at, Scale: 2, Disp: 2 * off}, text.As32())
		SHLQ(U8(4), text) // of a shortLine; the zero flag stands until it is asked for
		LEAQ(Mem{Base: lines, Index: text, Scale: 1}, text)
		MOVBLZX(Mem{Base: text, Disp: shortMax}, length.As32())
		CMOVQEQ(number, text)
		CMOVQEQ(line, length)
		CMPL(length.As32(), U32(lengthTooLong))
		JEQ(LabelRef(tooLong))
		v := reg.VecVirtual(YMM())
		if bytes == 16 {
			v = XMM()
		}
		VMOVDQU(Mem{Base: text}, v)
		VMOVDQU(v, Mem{Base: to})
		ADDQ(line, number)
		ADDQ(length, to)
	}
	loop := func(name string, bytes int) {
		Label(name)
		ADDQ(U8(unrolled-1), at)
		JGE(LabelRef(name + "Few"))
		Label(name + "Many")
		for i := range unrolled {
			record(i-unrolled+1, bytes, fmt.Sprintf("%sTooLong%d", name, i))
		}
		ADDQ(U8(unrolled), at)
		JLT(LabelRef(name + "Many"))
		Label(name + "Few")
		SUBQ(U8(unrolled-1), at)
		JZ(LabelRef("done"))
		Label(name + "Each")
		record(0, bytes, "done")
		INCQ(at)
		JNZ(LabelRef(name + "Each"))
		JMP(LabelRef("done"))
		for i := range unrolled {
			Label(fmt.Sprintf("%sTooLong%d", name, i))
			SUBQ(U8(unrolled-1-i), at)
			JMP(LabelRef("done"))
		}
	}
	CMPQ(line, U8(16))
	JGT(LabelRef("wide"))
	loop("narrow", 16)
	loop("wide", 32)
	Label("done")
	ADDQ(at, records)
	Label("none")
	VZEROUPPER()
	SUBQ(begin, to)
	Store(records, Return("done"))
	Store(to, Return("bytes"))
	RET()
}

// What dense.go says of a shortLine: its last byte is the length, or that it is too long.
const (
	shortMax      = 15
	lengthTooLong = 255
)

// hasAVX2 asks the processor and the system.
func hasAVX2() {
	TEXT("hasAVX2", attr.NOSPLIT, "func() bool")
	Doc("hasAVX2 says whether the processor has AVX2 and the system keeps its registers.")
	leaf := func(n uint64) {
		MOVL(U32(n), reg.EAX)
		XORL(reg.ECX, reg.ECX)
		CPUID()
	}
	need := func(r reg.Register, bits uint64) {
		ANDL(U32(bits), r)
		CMPL(r, U32(bits))
		JNE(LabelRef("no"))
	}
	leaf(0)
	CMPL(reg.EAX, U32(7))
	JLT(LabelRef("no"))
	leaf(1)
	need(reg.ECX, leaf1OSXSAVE|leaf1AVX)
	XORL(reg.ECX, reg.ECX)
	XGETBV()
	need(reg.EAX, xcr0XMMAndYMM)
	leaf(7)
	need(reg.EBX, leaf7AVX2)
	yes, no := GP8(), GP8()
	MOVB(U8(1), yes)
	Store(yes, ReturnIndex(0))
	RET()
	Label("no")
	XORB(no, no)
	Store(no, ReturnIndex(0))
	RET()
}

// constants are tables in memory.
type constants struct {
	bias Mem // the smallest value of each digit's byte, in which 9 is 255, so that a sum carries into the next byte
	one  Mem // the digit of the ones
	from Mem // 32 bytes of zeros and 32 of ones: read at 32-n, it selects the bytes from n on
}

func newConstants() constants {
	table := func(name string, words ...uint64) Mem {
		m := GLOBL(name, attr.RODATA|attr.NOPTR)
		for i, w := range words {
			DATA(8*i, U64(w))
		}
		return m
	}
	const ones = ^uint64(0)
	return constants{
		bias: table("stencilBias", 0xf6f6_f6f6_f6f6_f600, 0xf6f6_f6f6_f6f6_f6f6),
		one:  table("stencilOne", 0x100, 0),
		from: table("stencilFrom", 0, 0, 0, 0, ones, ones, ones, ones),
	}
}

// kernel is one way to end with a vector: the rest is the same for all.
type kernel struct {
	name   string
	doc    []string
	result string                         // more results
	before func()                         // nil for nothing
	finish func(v reg.VecVirtual, to Mem) // may overwrite v
	after  func()                         // nil for nothing
}

// emit writes the kernel. A vector that lies in one run costs a load, three instructions and a store:
//
//	text    F  i  z  z \n c3 c2 c1  7 \n      c1 ... are escapes, larger than any byte of a word
//	index   0  0  0  0  0  3  2  1  0  0      text - escape, not below 0
//	out     text + shift[index]               shift: the digit less its escape, and 0 at 0
//
// A vector that reaches into the next run is made with both prefixes and blended. Between two runs the prefix is counted
// up in one register, sixteen digits at once.
func (k kernel) emit(c constants) {
	TEXT(k.name, attr.NOSPLIT, "func(to *byte, vectors int, text *byte, ends *uint32, runs int, shift *[16]byte, escape byte, digits *[16]byte, pos, run int) (nextPos, nextRun int"+k.result+")")
	Doc(k.doc...)
	Pragma("noescape")

	Comment("What stays the same.")
	to := Load(Param("to"), GP64())
	left := Load(Param("vectors"), GP64())
	text := Load(Param("text"), GP64())
	ends := Load(Param("ends"), GP64())
	runs := Load(Param("runs"), GP64())
	digits := Load(Param("digits"), GP64())
	pos := Load(Param("pos"), GP64())
	run := Load(Param("run"), GP64())
	escape := YMM()
	VPBROADCASTB(address("escape"), escape)
	shift, bias, one, zero := XMM(), XMM(), XMM(), XMM()
	VMOVDQU(Mem{Base: Load(Param("shift"), GP64())}, shift)
	VMOVDQU(c.bias, bias)
	VMOVDQU(c.one, one)
	VPXOR(zero, zero, zero)
	from := GP64()
	LEAQ(c.from.Offset(vectorBytes), from)
	if k.before != nil {
		k.before()
	}

	Comment("The prefix of the run, and what it puts in.")
	prefix, next := XMM(), XMM()
	VMOVDQU(Mem{Base: digits}, next)
	table, nextTable := YMM(), YMM()
	put := func(prefix, table reg.VecVirtual) {
		VPADDB(prefix, shift, table.AsX())
		VINSERTI128(U8(1), table.AsX(), table, table)
	}
	put(next, table)

	Label("nextRun")
	Comment("The next prefix. A digit that carried is zero and becomes the smallest one; a lower half that is all zero carried too.")
	end, carry := GP64(), XMM()
	MOVL(Mem{Base: ends, Index: run, Scale: 4}, end.As32())
	VMOVDQA(next, prefix)
	VPADDQ(one, next, next)
	VPCMPEQQ(zero, next, carry)
	VPSLLDQ(U8(8), carry, carry)
	VPSUBQ(carry, next, next)
	VPMAXUB(bias, next, next)
	put(next, nextTable)

	Comment("The vectors that end in this run.")
	bytes := GP64()
	MOVQ(end, bytes)
	SUBQ(pos, bytes)
	SHRQ(U8(5), bytes)
	CMPQ(bytes, left)
	CMOVQGT(left, bytes)
	SUBQ(bytes, left)
	SHLQ(U8(5), bytes)
	JZ(LabelRef("boundary"))
	source := GP64()
	LEAQ(Mem{Base: text, Index: pos, Scale: 1}, source)
	ADDQ(bytes, pos)
	ADDQ(bytes, source)
	ADDQ(bytes, to)
	NEGQ(bytes)
	at := bytes
	vector := func(off int) {
		v, index := YMM(), YMM()
		VMOVDQU(Mem{Base: source, Index: at, Scale: 1, Disp: off}, v)
		VPSUBUSB(escape, v, index)
		VPSHUFB(index, table, index)
		VPADDB(index, v, v)
		k.finish(v, Mem{Base: to, Index: at, Scale: 1, Disp: off})
	}
	const less = (unrolled - 1) * vectorBytes
	ADDQ(U8(less), at)
	JGE(LabelRef("few"))
	Label("many")
	for i := range unrolled {
		vector(i*vectorBytes - less)
	}
	ADDQ(U32(unrolled*vectorBytes), at)
	JLT(LabelRef("many"))
	Label("few")
	SUBQ(U8(less), at)
	JGE(LabelRef("boundary"))
	Label("each")
	vector(0)
	ADDQ(U8(vectorBytes), at)
	JNZ(LabelRef("each"))

	Label("boundary")
	Comment("The vector that begins in this run, or at its end, and ends in the next one.")
	TESTQ(left, left)
	JZ(LabelRef("done"))
	SUBQ(pos, end)
	NEGQ(end)
	behind, v, index, after := YMM(), YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: from, Index: end, Scale: 1}, behind)
	VMOVDQU(Mem{Base: text, Index: pos, Scale: 1}, v)
	VPSUBUSB(escape, v, index)
	VPSHUFB(index, nextTable, after)
	VPSHUFB(index, table, index)
	VPBLENDVB(behind, after, index, index)
	VPADDB(index, v, v)
	k.finish(v, Mem{Base: to})
	ADDQ(U8(vectorBytes), to)
	ADDQ(U8(vectorBytes), pos)
	DECQ(left)
	VMOVDQA(nextTable, table)
	INCQ(run)
	CMPQ(run, runs)
	JNE(LabelRef("nextRun"))
	Comment("Behind the last run comes the first one.")
	XORQ(run, run)
	MOVL(Mem{Base: ends, Index: runs, Scale: 4, Disp: -4}, end.As32())
	SUBQ(end, pos)
	JMP(LabelRef("nextRun"))

	Label("done")
	VMOVDQU(prefix, Mem{Base: digits})
	if k.after != nil {
		k.after()
	}
	VZEROUPPER()
	Store(pos, Return("nextPos"))
	Store(run, Return("nextRun"))
	RET()
}

// address is where a parameter is in the frame.
func address(param string) Mem {
	b, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}
