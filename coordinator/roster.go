package coordinator

// fixedRoster is a roster whose members are known from the start.
type fixedRoster []Member

// FixedRoster is a roster of exactly these members.
func FixedRoster(members ...Member) Roster { return fixedRoster(members) }

// Members implements Roster.
func (r fixedRoster) Members() []Member { return r }

// Changed implements Roster: it never delivers.
func (r fixedRoster) Changed() <-chan struct{} { return nil }
