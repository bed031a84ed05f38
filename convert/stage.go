package convert

import (
	"context"
	"errors"
	"fmt"
	"os"

	"tracelake/analyze/link"
	"tracelake/schema"
)

// Stage is how far an import goes. Each stage does all that the ones before it
// do, so that the difference of two is what a step costs.
type Stage string

// The stages of an import.
const (
	StageStart  Stage = "start"  // nothing: what the program itself takes
	StageText   Stage = "text"   // read, decompress and digest the text
	StageDecode Stage = "decode" // find the events and their values
	StageLink   Stage = "link"   // join GPU events with launches and iterations
	StageWrite  Stage = "write"  // put together, encode and write all tables
)

// StagesOf returns the stages that an input has. Only text can be read without
// being decoded.
func StagesOf(path string) []Stage {
	if _, ok := readerOf(path).(*kinetoReader); ok {
		return []Stage{StageStart, StageText, StageDecode, StageLink, StageWrite}
	}
	return []Stage{StageStart, StageDecode, StageLink, StageWrite}
}

// RunStage imports an input up to a stage, the last one into the dataset at
// o.Output. The report has the counts that the stage gets to know. An input that
// is no trace is an error.
func RunStage(ctx context.Context, stage Stage, path string, o Options) (Report, error) {
	rep := Report{Path: path}
	if err := o.fill(); err != nil {
		return rep, err
	}
	src, err := sourceOf(path)
	if err != nil {
		return rep, err
	}
	rep.Bytes = src.Bytes
	from := readerOf(path)
	// The gate as in an import, so that no more goroutines compute.
	how := reading{o: &o, size: src.Bytes, gate: make(chan struct{}, o.Workers)}
	switch stage {
	case StageStart:
		return rep, nil
	case StageText:
		_, err := from.digest(ctx, how)
		return rep, err
	case StageDecode, StageLink:
		res, err := readAll(ctx, from, how)
		if err != nil {
			return rep, err
		}
		rep.Events, rep.TextBytes = res.events, res.textBytes
		rep.GPUEvents = int64(res.gpu.Len())
		if stage == StageLink {
			m := newModel(res, &o.Marks)
			links := link.Resolve(m.trace, link.Careful)
			(&importer{o: o}).judge(Input{Path: path}, m, links)
		}
		rep.Outcome, rep.Reason = res.diags.Outcome()
		return rep, nil
	case StageWrite:
		return writeStage(ctx, path, src.Bytes, o)
	}
	return rep, fmt.Errorf("no stage %q", stage)
}

func writeStage(ctx context.Context, path string, size int64, o Options) (rep Report, err error) {
	_, err = Run(ctx, Found{Inputs: []Input{{Path: path, Bytes: size, Named: true}}}, o, func(r Report) { rep = r })
	switch {
	case err != nil:
	case rep.Failed != "":
		err = errors.New(rep.Failed)
	case rep.Outcome == "rejected":
		err = &schema.RejectedError{Reason: rep.Reason}
	case rep.Skipped != "":
		err = fmt.Errorf("%s holds traces already", o.Output)
	}
	return rep, err
}

// OutputBytes adds up the files of a dataset.
func OutputBytes(dir string) (n int64, err error) {
	err = eachFile(dir, func(_ string, info os.FileInfo) error {
		n += info.Size()
		return nil
	})
	return n, err
}
