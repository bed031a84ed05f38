package nsight

import (
	"errors"
	"fmt"

	"tracelake/schema"
)

func reject(format string, a ...any) error {
	return &schema.RejectedError{Reason: fmt.Sprintf(format, a...)}
}

// errStop ends a scan early.
var errStop = errors.New("nsight: enough")
