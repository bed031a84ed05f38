package main

import "github.com/spf13/cobra"

// moreCommands are the commands besides convert, inspect and version.
func moreCommands() []*cobra.Command {
	return []*cobra.Command{
		newActivitiesCommand(), newSQLCommand(), newAnalyzeCommand(), newDiffCommand(), newSliceCommand(), newRedactCommand(), newReportCommand(), newBenchCommand(),
		newCollectCommand(), newWorkerCommand(), newIterationsCommand(),
		newCompactCommand(), newVacuumCommand(), newViewsCommand(), newManCommand(),
	}
}
