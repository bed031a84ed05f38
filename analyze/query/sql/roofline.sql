-- title: Roofline of matrix operators
-- what it answers: How close do matrix products, attention and convolutions come to what the GPU can do, and is it arithmetic or memory that bounds them?
--   FLOPs and bytes follow from the recorded input shapes (record_shapes=True): a product of n×k and k×m is 2nkm FLOPs,
--   as torch's FlopCounterMode counts; causal attention over equal lengths is half of the whole; the backward pass of
--   attention has five products where the forward pass has two; in a transposed convolution each value of the input
--   meets the whole kernel. Of Nsight Systems the ranges of emit_nvtx(record_shapes=True) are the operators; they tell
--   sizes, but neither types nor other arguments. Bytes are those of operands and result, each moved once.
--   Time is that of the GPU work that the operator launched. Of nested operators the innermost one counts. float32 counts
--   as TF32 where the names of the kernels say so. Peaks are those of the view device_peaks (--devices FILE adds to it).
--   What cannot be computed has its reason in bound_by, and the last row is all other GPU time. --iteration, --from
--   and --to choose operators by their start, with all GPU work that they launch.
-- selects: run, rank, trace, device, iteration, from, to
-- parameters:
--   top  rows; default 25
-- columns and units:
--   op           operator
--   shapes       sizes of its operands; stride, padding and dilation of convolutions, and what the result of transposed ones is padded with
--   dtype        element type: fp64, fp32, tf32, fp16, bf16, fp8, int8, or as recorded
--   gpu          product name
--   count        calls
--   gpu_ms       GPU time of the calls, ms
--   share_pct    part of all GPU time, %
--   gflop        arithmetic of one call, GFLOP
--   mbytes       memory traffic of one call at least, MB (1e6 bytes)
--   intensity    FLOPs per byte
--   tflop_per_s  achieved, TFLOP/s
--   gb_per_s     achieved at least, GB/s
--   roof_pct     achieved FLOP/s of the most that peaks and intensity allow, %
--   bound_by     compute or memory; no shapes, no arguments (nothing but sizes was recorded), no rule, no peak or no GPU work where there is no answer; not covered in the last row
WITH rules(op, family, a, causal_at) AS (VALUES -- a: first operand, from 1; *_at: concrete inputs, from 0
  ('aten::mm', 'product', 1, NULL),
  ('aten::bmm', 'product', 1, NULL),
  ('aten::mv', 'product', 1, NULL),
  ('aten::_int_mm', 'product', 1, NULL),
  ('aten::_scaled_mm', 'product', 1, NULL),
  ('aten::addmm', 'sum', 2, NULL),
  ('aten::baddbmm', 'sum', 2, NULL),
  ('aten::addmv', 'sum', 2, NULL),
  ('aten::_addmm_activation', 'sum', 2, NULL),
  ('aten::linear', 'linear', 1, NULL),
  ('vllm::rocm_unquantized_gemm', 'linear', 1, NULL),
  ('aten::scaled_dot_product_attention', 'attention', 1, 5),
  ('aten::_scaled_dot_product_flash_attention', 'attention', 1, 4),
  ('aten::_scaled_dot_product_efficient_attention', 'attention', 1, 6),
  ('aten::_scaled_dot_product_cudnn_attention', 'attention', 1, 6),
  ('aten::_scaled_dot_product_fused_attention_overrideable', 'attention', 1, 5),
  ('flash_attn::_flash_attn_forward', 'attention heads last', 1, 5),
  ('aten::_scaled_dot_product_flash_attention_backward', 'attention backward', 2, 11),
  ('aten::_scaled_dot_product_efficient_attention_backward', 'attention backward', 2, 11),
  ('aten::_scaled_dot_product_cudnn_attention_backward', 'attention backward', 2, 14),
  ('aten::convolution', 'convolution', 1, NULL),
  ('aten::_convolution', 'convolution', 1, NULL),
  ('aten::cudnn_convolution', 'convolution', 1, NULL),
  ('aten::miopen_convolution', 'convolution', 1, NULL),
  ('aten::convolution_overrideable', 'convolution', 1, NULL),
  ('aten::cudnn_convolution_transpose', 'convolution transposed', 1, NULL),
  ('aten::miopen_convolution_transpose', 'convolution transposed', 1, NULL),
  ('aten::slow_conv_transpose2d', 'convolution transposed', 1, NULL),
  ('aten::slow_conv_transpose3d', 'convolution transposed', 1, NULL),
  ('aten::convolution_backward', 'convolution backward', 2, NULL)
),
convolutions(op, stride_at, padding_at, dilation_at, transposed_at, grown_at, groups_at) AS (VALUES -- grown: output padding
  ('aten::convolution', 3, 4, 5, 6, 7, 8),
  ('aten::_convolution', 3, 4, 5, 6, 7, 8),
  ('aten::cudnn_convolution', 3, 2, 4, NULL, NULL, NULL),
  ('aten::miopen_convolution', 4, 3, 5, NULL, NULL, NULL),
  ('aten::convolution_overrideable', 3, 4, 5, 6, 7, 8),
  ('aten::cudnn_convolution_transpose', 4, 2, 5, NULL, 3, 6),
  ('aten::miopen_convolution_transpose', 5, 3, 6, NULL, 4, 7),
  ('aten::slow_conv_transpose2d', 4, 5, 7, NULL, 6, NULL),
  ('aten::slow_conv_transpose3d', 4, 5, 7, NULL, 6, NULL),
  ('aten::convolution_backward', 4, 5, 6, 7, NULL, NULL)
),
elements(recorded, dtype, size) AS (VALUES
  ('double', 'fp64', 8), ('float', 'fp32', 4), ('c10::Half', 'fp16', 2), ('c10::BFloat16', 'bf16', 2), ('signed char', 'int8', 1), ('unsigned char', 'int8', 1),
  ('c10::Float8_e4m3fn', 'fp8', 1), ('c10::Float8_e4m3fnuz', 'fp8', 1), ('c10::Float8_e5m2', 'fp8', 1), ('c10::Float8_e5m2fnuz', 'fp8', 1)
),
calls AS (
  SELECT e.trace_id, e.pid, e.tid, e.start_ns, e.start_ns + e.dur_ns AS end_ns, r.*, e.input_dims, e.input_types, e.concrete_inputs
  FROM chosen_calls(false) AS e
  JOIN selected_traces AS t ON t.trace_id = e.trace_id
  JOIN rules AS r ON r.op = e.name
  WHERE e.category = 'cpu_op' AND t.gpu_events > 0 AND timed(e.start_ns, e.dur_ns, e.time_flag) AND e.dur_ns > 0 AND in_window(e.start_ns, t.start_ns)
    AND e.name IN (SELECT op FROM rules)
  WINDOW w AS (PARTITION BY e.trace_id, e.pid, e.tid ORDER BY e.start_ns, e.dur_ns DESC, e.event_index)
  QUALIFY coalesce(lead(e.start_ns) OVER w >= e.start_ns + e.dur_ns, true) -- the innermost
),
work AS (
  SELECT w.trace_id, w.launch_id, any_value(w.trace_start_ns) AS trace_start_ns, any_value(w.process) AS process, any_value(w.device) AS device, sum(w.dur_ns) AS ns,
    coalesce(sum(w.dur_ns) FILTER (contains(lower(w.name), 'tf32') OR contains(lower(w.name), 's1688')), 0) AS tf32_ns
  FROM gpu_work_anytime AS w
  WHERE w.launch_id IS NOT NULL
  GROUP BY ALL
),
so_far AS ( -- per thread, so that the difference of two rows is the time launched between them
  SELECT l.trace_id, l.pid::VARCHAR AS pid, l.tid::VARCHAR AS tid, l.start_ns, w.process, w.device,
    sum(w.ns) OVER o AS ns, sum(w.tf32_ns) OVER o AS tf32_ns, sum(w.ns) FILTER (in_iteration(l.iteration_id) AND in_window(l.start_ns, w.trace_start_ns)) OVER o AS window_ns
  FROM work AS w
  JOIN launches AS l ON l.trace_id = w.trace_id AND l.event_index = w.launch_id
  WHERE l.start_ns IS NOT NULL
  WINDOW o AS (PARTITION BY l.trace_id, l.pid, l.tid ORDER BY l.start_ns)
),
timed_calls AS (
  SELECT c.*, b.process, b.device, coalesce(b.ns, 0) - coalesce(a.ns, 0) AS gpu_ns, coalesce(b.tf32_ns, 0) - coalesce(a.tf32_ns, 0) AS tf32_ns,
    coalesce(b.window_ns, 0) - coalesce(a.window_ns, 0) AS window_ns
  FROM calls AS c
  ASOF LEFT JOIN so_far AS a ON a.trace_id = c.trace_id AND a.pid = c.pid AND a.tid = c.tid AND a.start_ns < c.start_ns
  ASOF LEFT JOIN so_far AS b ON b.trace_id = c.trace_id AND b.pid = c.pid AND b.tid = c.tid AND b.start_ns < c.end_ns
),
kinds AS ( -- calls that are alike are computed once
  SELECT trace_id, process, device, op, any_value(family) AS family, any_value(a) AS a, any_value(causal_at) AS causal_at,
    input_dims, input_types, concrete_inputs, gpu_ns > 0 AS worked, tf32_ns > 0 AS tf32, count(*) AS calls, sum(gpu_ns) AS gpu_ns, sum(window_ns) AS window_ns
  FROM timed_calls
  GROUP BY trace_id, process, device, op, input_dims, input_types, concrete_inputs, gpu_ns > 0, tf32_ns > 0
),
parsed AS (
  SELECT * EXCLUDE (a, recorded, causal_at, stride_at, padding_at, dilation_at, transposed_at, grown_at, groups_at),
    dims[a] AS x, dims[a + 1] AS y, CASE WHEN family LIKE 'attention%' THEN dims[a + 2] END AS z, dims[1] AS first,
    recorded[a] AS type,
    json_extract_string(concrete_inputs, '$[' || causal_at || ']') = 'True' AS causal,
    TRY_CAST(json_extract_string(concrete_inputs, '$[' || stride_at || ']') AS BIGINT[]) AS stride,
    TRY_CAST(json_extract_string(concrete_inputs, '$[' || padding_at || ']') AS BIGINT[]) AS padding,
    TRY_CAST(json_extract_string(concrete_inputs, '$[' || dilation_at || ']') AS BIGINT[]) AS dilation,
    TRY_CAST(json_extract_string(concrete_inputs, '$[' || grown_at || ']') AS BIGINT[]) AS grown,
    coalesce(TRY_CAST(json_extract_string(concrete_inputs, '$[' || groups_at || ']') AS BIGINT), 1) AS groups,
    CASE WHEN family = 'convolution transposed' THEN true WHEN transposed_at IS NULL THEN false
      ELSE json_extract_string(concrete_inputs, '$[' || transposed_at || ']') = 'True' END AS transposed,
    len(regexp_extract_all(regexp_extract(json_extract_string(concrete_inputs, '$[10]'), '^\[\w+, \w+'), 'True')) AS gradients,
    coalesce(TRY_CAST(json_extract_string(concrete_inputs, '$[3]') AS DOUBLE), 1) = 0 AS overwritten -- beta of a sum
  FROM (
    SELECT *, TRY_CAST(input_dims AS BIGINT[][]) AS dims, TRY_CAST(json(input_types) AS VARCHAR[]) AS recorded
    FROM kinds
    LEFT JOIN convolutions USING (op)
  )
),
sized AS (
  SELECT p.*, e.size, coalesce(CASE WHEN p.tf32 AND e.dtype = 'fp32' THEN 'tf32' END, e.dtype, p.type) AS dtype,
    list_product(x) AS nx, list_product(y) AS ny, list_product(z) AS nz, list_product(first) AS nfirst,
    CASE
      WHEN family LIKE 'convolution%' AND (len(x) <> len(y) OR len(x) < 3) THEN NULL
      WHEN family IN ('convolution', 'convolution transposed') AND transposed THEN list_transform(range(1, len(x) - 1), lambda i:
        (x[i + 2] - 1) * coalesce(stride[i], stride[1]) - 2 * coalesce(padding[i], padding[1])
        + coalesce(dilation[i], dilation[1]) * (y[i + 2] - 1) + coalesce(grown[i], grown[1]) + 1)
      WHEN family = 'convolution' THEN list_transform(range(1, len(x) - 1), lambda i:
        (x[i + 2] + 2 * coalesce(padding[i], padding[1]) - coalesce(dilation[i], dilation[1]) * (y[i + 2] - 1) - 1) // coalesce(stride[i], stride[1]) + 1)
      WHEN family = 'attention heads last' THEN [x[1], x[3], x[2], x[4]]
      ELSE x END AS shape, -- of attention: batch, heads, length, width; of a convolution: space of the result
    CASE WHEN family = 'attention heads last' THEN y[2] ELSE y[3] END AS keys
  FROM parsed AS p
  LEFT JOIN elements AS e ON e.recorded = p.type
),
counted AS (
  SELECT *,
    CASE
      WHEN family IN ('product', 'sum') AND len(x) >= 2 AND len(y) = 1 AND x[-1] = y[1] THEN 2 * nx
      WHEN family IN ('product', 'sum') AND len(x) >= 2 AND len(y) = len(x) AND x[-1] = y[-2] THEN 2 * nx * y[-1]
      WHEN family = 'linear' AND len(x) >= 1 AND len(y) = 2 AND x[-1] = y[2] THEN 2 * nx * y[1]
      WHEN family IN ('attention', 'attention heads last') AND len(x) = 4 AND len(y) = 4 AND len(z) = 4
        THEN 2 * shape[1] * shape[2] * shape[3] * keys * (x[4] + z[4]) * if(causal AND shape[3] = keys, 0.5, 1)
      WHEN family = 'attention backward' AND len(x) = 4 AND len(y) = 4 AND len(z) = 4
        THEN 2 * shape[1] * shape[2] * shape[3] * keys * (3 * x[4] + 2 * z[4]) * if(causal AND shape[3] = keys, 0.5, 1)
      WHEN family IN ('convolution', 'convolution transposed') AND shape IS NOT NULL
        THEN 2 * x[1] * ny * list_product(if(transposed, x[3:], shape))
      WHEN family = 'convolution backward' AND len(x) = len(y) AND len(x) > 2 AND gradients > 0
        THEN 2 * gradients * if(transposed, nx, nfirst) * list_product(y[2:])
    END AS flop,
    size * CASE
      WHEN family IN ('product', 'sum') THEN nx + ny + if(family = 'sum' AND NOT overwritten, nfirst, 0)
        + nx / x[-1] * if(len(y) = 1, 1, y[-1]) * CASE dtype WHEN 'fp8' THEN 2 WHEN 'int8' THEN 4 ELSE 1 END
      WHEN family = 'linear' THEN nx + ny + nx / x[-1] * y[1]
      WHEN family IN ('attention', 'attention heads last') THEN nx + ny + nz + nx / x[4] * z[4]
      WHEN family = 'attention backward' THEN 2 * (nx + ny + nz + nx / x[4] * z[4])
      WHEN family IN ('convolution', 'convolution transposed') THEN nx + ny + x[1] * if(transposed, y[2] * groups, y[1]) * list_product(shape)
      WHEN family = 'convolution backward' THEN gradients * (nx + ny + nfirst)
    END AS bytes
  FROM sized
),
gpus AS (
  SELECT d.trace_id, d.ordinal, d.global_pid, any_value(d.name) AS name, arg_min(p, p.position) AS peak
  FROM devices AS d
  LEFT JOIN device_peaks AS p ON regexp_matches(d.name, p.gpu, 'i')
  GROUP BY ALL
),
rows AS (
  SELECT c.op, g.name AS gpu, c.dtype,
    array_to_string(list_filter([x::VARCHAR, y::VARCHAR, z::VARCHAR, 'stride ' || stride::VARCHAR, 'padding ' || padding::VARCHAR, 'dilation ' || dilation::VARCHAR,
      if(transposed, 'transposed, output padding ' || coalesce(grown::VARCHAR, '?'), NULL)], lambda s: s IS NOT NULL), ' ') AS shapes,
    flop, bytes, x IS NULL AS shapeless, type IS NULL OR family LIKE 'convolution%' AND c.concrete_inputs IS NULL AS sizes_only, worked, sum(calls)::BIGINT AS calls, sum(gpu_ns)::BIGINT AS gpu_ns, sum(window_ns)::BIGINT AS window_ns, any_value(g.peak.gb_per_s) AS gb_per_s,
    any_value(CASE c.dtype WHEN 'fp64' THEN g.peak.fp64 WHEN 'fp32' THEN g.peak.fp32 WHEN 'tf32' THEN g.peak.tf32 WHEN 'fp16' THEN g.peak.fp16
      WHEN 'bf16' THEN g.peak.bf16 WHEN 'fp8' THEN g.peak.fp8 WHEN 'int8' THEN g.peak.int8 END) AS tflop_per_s
  FROM counted AS c
  LEFT JOIN gpus AS g ON c.worked AND g.trace_id = c.trace_id AND g.ordinal IS NOT DISTINCT FROM c.device AND g.global_pid IS NOT DISTINCT FROM c.process
  GROUP BY ALL
),
other AS ( -- launched in what is selected, or started in it where the launch is unknown
  SELECT coalesce(sum(w.dur_ns), 0)::BIGINT - coalesce((SELECT sum(window_ns) FROM rows), 0)::BIGINT AS ns, count(*) AS events
  FROM gpu_work_anytime AS w
  LEFT JOIN launches AS l ON l.trace_id = w.trace_id AND l.event_index = w.launch_id
  WHERE in_iteration(w.iteration_id) AND in_window(coalesce(l.start_ns, w.start_ns), w.trace_start_ns)
),
answers AS (
  SELECT *, row_number() OVER (ORDER BY gpu_ns DESC, calls DESC, op, shapes, dtype, gpu) AS place, flop / bytes AS intensity,
    CASE WHEN NOT worked THEN 'no GPU work' WHEN shapeless THEN 'no shapes' WHEN (flop IS NULL OR bytes IS NULL) AND sizes_only THEN 'no arguments'
      WHEN flop IS NULL OR bytes IS NULL THEN 'no rule'
      WHEN tflop_per_s IS NULL OR gb_per_s IS NULL THEN 'no peak'
      WHEN flop / bytes * gb_per_s < 1e3 * tflop_per_s THEN 'memory' ELSE 'compute' END AS bound_by
  FROM rows
  UNION ALL BY NAME
  SELECT 'everything else' AS op, o.ns AS gpu_ns, NULL::BIGINT AS calls, 'not covered' AS bound_by
  FROM other AS o
  WHERE o.events > 0
)
SELECT
  op, shapes, dtype, gpu, calls AS count,
  round(gpu_ns / 1e6, 3) AS gpu_ms,
  round(100.0 * gpu_ns / nullif((SELECT sum(gpu_ns) FROM answers), 0), 2) AS share_pct,
  round(flop / 1e9, 6) AS gflop,
  round(bytes / 1e6, 6) AS mbytes,
  round(intensity, 3) AS intensity,
  round(flop * calls / nullif(gpu_ns, 0) / 1e3, 3) AS tflop_per_s,
  round(bytes * calls / nullif(gpu_ns, 0), 3) AS gb_per_s,
  round(100.0 * flop * calls / nullif(gpu_ns, 0) / least(1e3 * a.tflop_per_s, a.intensity * a.gb_per_s), 2) AS roof_pct,
  bound_by
FROM answers AS a
WHERE place IS NULL OR place <= coalesce(getvariable('top')::BIGINT, 25)
ORDER BY place NULLS LAST;
