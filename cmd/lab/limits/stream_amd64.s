#include "textflag.h"

// func storeLines(p *byte, lines int)
TEXT ·storeLines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), DI
	MOVQ lines+8(FP), CX
	MOVQ $0x7878787878787878, AX
	MOVQ AX, X0
	PUNPCKLQDQ X0, X0

next:
	MOVNTDQ X0, (DI)
	MOVNTDQ X0, 16(DI)
	MOVNTDQ X0, 32(DI)
	MOVNTDQ X0, 48(DI)
	ADDQ $64, DI
	DECQ CX
	JNZ next
	SFENCE
	RET
