package coordinator

import "hash/crc32"

// joinCRC32C returns the CRC32C of a followed by b, given the CRC32C of each and the length of b.
//
// A CRC is the remainder of the message as a polynomial over GF(2). Appending len(b) bytes multiplies what stands before
// them by x^(8 len(b)), so the joined remainder is crc(a) x^(8 len(b)) + crc(b). The inversions before and after, which
// CRC32C has too, cancel out. The standard library has no such function (golang/go#12297).
func joinCRC32C(a, b uint32, lenBytesOfB int64) uint32 {
	return multiplyCRC32C(a, powerCRC32C(lenBytesOfB)) ^ b
}

// powerCRC32C returns x^(8 n) modulo the polynomial, by squaring. Polynomials are reflected, as crc32 has them: bit 31 is x^0.
func powerCRC32C(n int64) uint32 {
	power, square := uint32(1)<<31, uint32(1)<<(31-8) // x^0, x^8
	for ; n > 0; n /= 2 {
		if n%2 == 1 {
			power = multiplyCRC32C(power, square)
		}
		square = multiplyCRC32C(square, square)
	}
	return power
}

// multiplyCRC32C returns a times b modulo the polynomial: for each power of x in a, from x^0 up, it adds b times that power.
func multiplyCRC32C(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a>>31 == 1 {
			product ^= b
		}
		carry := b & 1 // x^31 becomes x^32, which is the rest of the polynomial
		b = b>>1 ^ carry*crc32.Castagnoli
	}
	return product
}
