package experiment

import "math/rand/v2"

// order is who comes when in a round: the numbers of the competitors, first to last. Two rounds make a block, and the
// second is the mirror of the first (ABBA), so that a machine that gets steadily faster or slower favours nobody. Which
// of both comes first is drawn, so that nothing that repeats can keep step with the blocks either.
func order(competitors, round int, seed uint64) []int {
	block := rand.New(rand.NewPCG(seed, uint64(round/2)))
	backwards := block.IntN(2) != round%2
	all := make([]int, competitors)
	for i := range all {
		all[i] = i
		if backwards {
			all[i] = competitors - 1 - i
		}
	}
	return all
}
