// Package layout knows what a file contains before anybody has written it: how long it is, which record is where, and
// the bytes at any offset. The file is a function, and everything else copies out of it: writing, streaming, verifying
// and repairing.
//
//	l, err := layout.New(layout.Spec{N: 1_000_000_000, Rules: rules})
//	l.Size()           // 7,874,074,073 bytes
//	l.Offset(15)       // record 15 begins at byte 49
//	l.Locate(52)       // byte 52 is byte 3 of record 15
//	l.Fill(p, 52)      // "zBuzz\n16\n..."
//
// The package is pure: it does no I/O, starts no goroutine, and asks neither clock nor machine, but for the
// processor's instructions, on which no byte depends.
//
// # Words
//
// A record is one logical item, numbered from 1. Its line is its bytes with the newline: the words of all the rules
// whose divisors divide its number, in the order of the rules, or the number itself when there is none. So FizzBuzz is
// 3=Fizz,5=Buzz, counting is no rules, and yes is 1=y. The period is the least common multiple of the divisors: the
// pattern of words repeats with it. A digit bucket is the run of records whose numbers have the same count of digits.
//
//	record    1   2   3      4   5      6      7   8   9      | 10     11   12     13   14   15         | ...
//	line      1\n 2\n Fizz\n 4\n Buzz\n Fizz\n 7\n 8\n Fizz\n | Buzz\n 11\n Fizz\n 13\n 14\n FizzBuzz\n | ...
//	offset    0   2   4      9   11     16     21  23  25     | 30     35   38     43   46   49          58
//	bucket    ------------------------ 1 -------------------- | --------------------- 2 --------------------
//
// # The closed form
//
// Within a bucket the length of a line depends only on which rules divide its record. With d digits, the records up to
// x therefore have
//
//	bytes(d, x) = x                                    a newline each
//	            + Σ over rules  ⌊x / divisor⌋ · len    the words
//	            + d · numbers(x)                       the numbers
//
// where numbers(x) counts the records up to x that no divisor divides, by inclusion and exclusion:
//
//	numbers(x) = Σ over sets S of divisors  (-1)^|S| · ⌊x / lcm(S)⌋
//
// A bucket [a, b] has bytes(d, b) - bytes(d, a-1) bytes, a file is a sum over at most nineteen buckets, and no question
// depends on n itself. For 3=Fizz,5=Buzz and n = 15, newlines + words + numbers:
//
//	1 ... 9     9 + (3·4 + 1·4) + 1·5 = 30     the numbers 1 2 4 7 8
//	10 ... 15   6 + (2·4 + 2·4) + 2·3 = 28     the numbers 11 13 14, FizzBuzz counted once for each word
//	            together                  58
//
// Sixteen divisors have 65,536 sets. Three things keep the sum short: sets with the same lcm are one term; an lcm above
// n counts nothing; and the smallest divisors, the base, are not expanded at all but counted by a table of one period
// P of theirs, of at most 65,536 entries. What is left of the base among the multiples of an lcm m are the divisors
// b / gcd(b, m), whose period is P / gcd(P, m), so one table for each divisor of P serves all terms:
//
//	numbers(x) = Σ over lcms m of the other divisors  coef(m) · survivors[gcd(P, m)](⌊x / m⌋)
//
// For a short period, P is the whole of it and there is one term. For the primes 2 to 53 there are 1024 instead of
// 65,536. No floating-point number takes part, products are 128 bits wide where a size is first computed, and later
// sums may wrap around since what is asked for is a difference that fits. A file of more than 2^63-1 bytes is refused
// by an error that names the largest n for its rules.
//
// Locate inverts Offset. Bytes grow almost linearly with records, so a straight line through a bucket's ends hits
// within a few records, and galloping and halving do the rest.
//
// # Filling
//
// Fill writes the bytes of any range without knowing anything of an earlier call, and never divides for a record. A
// bucket is filled in the first of these ways that can:
//
//	constant.go  every record has words: copies of one text
//	template.go  short periods: a block of whole periods, into which the digits that change are put
//	sieve.go     everything else: mark the multiples of each divisor in a run of 1000 records, then write it,
//	             sparse.go where words are rare, dense.go where they are frequent
//
// Digits are put in by vector instructions where the processor has some (stencil.go, with assembly that is generated),
// and else stored one by one into a private copy (block.go). All ways make the same bytes. A text is made when a window
// first needs it, is at most 256 KiB long, and serves everybody.
//
// What is needed between calls is scratch memory in pools. It keeps its place, so a Fill that goes on where one ended
// finds everything as it needs it; but it is only memory, and any other Fill gets the same bytes from it.
package layout
