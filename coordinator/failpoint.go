package coordinator

// failpoint names a step of a job's life between two operations. A program that was built with the tag
// gigafizz_failpoints ends itself there, as kill -9 would, when GIGAFIZZ_FAILPOINT names the step (and :N, the Nth time
// that it is reached). In every other build reaching one is nothing.
type failpoint string

// The steps, in the order of a job's life; the last three are a resume's.
const (
	afterCreate                  failpoint = "afterCreate"
	afterJournalHeader           failpoint = "afterJournalHeader"
	afterAllocate                failpoint = "afterAllocate"
	beforeDispatch               failpoint = "beforeDispatch"
	afterFlushBeforeJournal      failpoint = "afterFlushBeforeJournal"
	afterJournalWriteBeforeFsync failpoint = "afterJournalWriteBeforeFsync"
	afterLastDurable             failpoint = "afterLastDurable"
	afterFinalFlush              failpoint = "afterFinalFlush"
	beforePublish                failpoint = "beforePublish"
	afterLink                    failpoint = "afterLink"
	afterUnlink                  failpoint = "afterUnlink"
	afterRename                  failpoint = "afterRename"
	beforeDirSync                failpoint = "beforeDirSync"
	afterDirSync                 failpoint = "afterDirSync"
	beforeJournalRemove          failpoint = "beforeJournalRemove"
	afterEpochCreate             failpoint = "afterEpochCreate"
	afterEpochHeader             failpoint = "afterEpochHeader"
	duringReadBack               failpoint = "duringReadBack"
)
