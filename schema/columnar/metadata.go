package columnar

import (
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tracelake/schema"
)

// The footer structures below are those of the format package with the fields
// that it lacks: whether the extremes in the statistics are exact.

type statistics struct {
	NullCount  int64             `thrift:"3,writezero"`
	MaxValue   []byte            `thrift:"5"`
	MinValue   []byte            `thrift:"6"`
	IsMaxExact thrift.Null[bool] `thrift:"7"`
	IsMinExact thrift.Null[bool] `thrift:"8"`
}

type columnMetaData struct {
	Type                  format.Type                            `thrift:"1,required"`
	Encoding              thrift.Slice[format.Encoding]          `thrift:"2,required"`
	PathInSchema          thrift.Slice[string]                   `thrift:"3,required"`
	Codec                 format.CompressionCodec                `thrift:"4,required"`
	NumValues             int64                                  `thrift:"5,required"`
	TotalUncompressedSize int64                                  `thrift:"6,required"`
	TotalCompressedSize   int64                                  `thrift:"7,required"`
	DataPageOffset        int64                                  `thrift:"9,required"`
	DictionaryPageOffset  int64                                  `thrift:"11,optional"`
	Statistics            statistics                             `thrift:"12,optional,writezero"`
	EncodingStats         thrift.Slice[format.PageEncodingStats] `thrift:"13,optional"`
}

type columnChunk struct {
	FileOffset        int64          `thrift:"2,required"`
	MetaData          columnMetaData `thrift:"3,required"`
	OffsetIndexOffset int64          `thrift:"4,optional"`
	OffsetIndexLength int32          `thrift:"5,optional"`
	ColumnIndexOffset int64          `thrift:"6,optional"`
	ColumnIndexLength int32          `thrift:"7,optional"`
}

type rowGroup struct {
	Columns             thrift.Slice[columnChunk]          `thrift:"1,required"`
	TotalByteSize       int64                              `thrift:"2,required"`
	NumRows             int64                              `thrift:"3,required"`
	SortingColumns      thrift.Slice[format.SortingColumn] `thrift:"4,optional"`
	FileOffset          int64                              `thrift:"5,optional"`
	TotalCompressedSize int64                              `thrift:"6,optional"`
}

type fileMetaData struct {
	Version          int32                              `thrift:"1,required"`
	Schema           thrift.Slice[format.SchemaElement] `thrift:"2,required"`
	NumRows          int64                              `thrift:"3,required"`
	RowGroups        thrift.Slice[rowGroup]             `thrift:"4,required"`
	KeyValueMetadata thrift.Slice[format.KeyValue]      `thrift:"5,optional"`
	CreatedBy        string                             `thrift:"6,optional"`
	ColumnOrders     thrift.Slice[format.ColumnOrder]   `thrift:"7,optional"`
}

// schemaElements returns the columns of a table as the footer lists them, and
// the number of leaves.
func schemaElements(t *schema.Table) (elements []format.SchemaElement, leaves int) {
	elements = append(elements, format.SchemaElement{
		Name: "schema", NumChildren: thrift.New(int32(len(t.Columns))),
	})
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Type == schema.Intervals {
			elements = append(elements, listElements(c)...)
			leaves += 2
			continue
		}
		e := format.SchemaElement{
			Name: c.Name, RepetitionType: thrift.New(repetition(c)), Type: thrift.New(physical(c.Type)),
		}
		if c.Type == schema.String {
			e.ConvertedType = thrift.New(deprecated.UTF8)
			e.LogicalType = format.LogicalType{Value: &format.StringType{}}
		}
		elements = append(elements, e)
		leaves++
	}
	return elements, leaves
}

// listElements returns the three levels that the format prescribes for a list;
// other shapes are read differently from engine to engine.
func listElements(c *schema.Column) []format.SchemaElement {
	required := thrift.New(format.Required)
	return []format.SchemaElement{
		{
			Name: c.Name, RepetitionType: thrift.New(repetition(c)), NumChildren: thrift.New(int32(1)),
			ConvertedType: thrift.New(deprecated.List), LogicalType: format.LogicalType{Value: &format.ListType{}},
		},
		{Name: "list", RepetitionType: thrift.New(format.Repeated), NumChildren: thrift.New(int32(1))},
		{Name: "element", RepetitionType: required, NumChildren: thrift.New(int32(2))},
		{Name: "offset_ns", RepetitionType: required, Type: thrift.New(format.Int64)},
		{Name: "dur_ns", RepetitionType: required, Type: thrift.New(format.Int64)},
	}
}

func repetition(c *schema.Column) format.FieldRepetitionType {
	if c.Nullable {
		return format.Optional
	}
	return format.Required
}

func physical(t schema.Type) format.Type {
	switch t {
	case schema.String:
		return format.ByteArray
	case schema.Float64:
		return format.Double
	case schema.Bool:
		return format.Boolean
	}
	return format.Int64
}
