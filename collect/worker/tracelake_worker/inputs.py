"""Inputs and labels for one step, by what the model's forward takes."""

from .errors import bad_request, unsupported
from .models import signature

DEFAULT_PROMPT = "The quick brown fox jumps over the lazy dog."
DEFAULT_AUDIO_SAMPLES = 16_000
DEFAULT_RANDOM_TOKENS = 16
DECODER_TOKENS = 8
IGNORED = -100


def build(job, model, config, device, tokenizer=None):
    """Keyword arguments of the model's forward, labels not among them."""
    import torch

    generator = torch.Generator().manual_seed(job.seed)
    takes = signature(model)
    main = model.main_input_name
    main = main if isinstance(main, str) else next(iter(main))
    if main == "input_ids":
        inputs = text(job, config, takes, tokenizer, generator)
        if "pixel_values" in takes and _dual_encoder(config):
            inputs["pixel_values"] = pixels(job, config, generator, rows=len(inputs["input_ids"]))
    elif main == "pixel_values":
        inputs = {"pixel_values": pixels(job, config, generator)}
    elif main in ("input_features", "input_values"):
        inputs = {main: audio(job, config, main, generator)}
    else:
        raise unsupported(f"{type(model).__name__} takes {main!r}: inputs are made for text, images and audio only")
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in takes:
        inputs["decoder_input_ids"] = decoder_ids(inputs, config)
    if "use_cache" in takes:
        inputs["use_cache"] = bool(job.options.get("use_cache", False))
    floating = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    return {k: _placed(v, device, floating) for k, v in inputs.items()}


def _placed(value, device, floating):
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device=device, dtype=floating if value.is_floating_point() else None)


def text(job, config, takes, tokenizer, generator):
    import torch

    rows = rows_of_ids(job, config, tokenizer, generator)
    width = job.sequence_length or max(len(r) for r in rows)
    _check_length(config, width)
    pad = _pad_id(config, tokenizer)
    ids = torch.full((len(rows), width), pad, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        row = row[:width]
        ids[i, : len(row)] = torch.tensor(row, dtype=torch.long)
        mask[i, : len(row)] = 1
    vocabulary = _text_config(config).vocab_size if hasattr(_text_config(config), "vocab_size") else None
    if vocabulary is not None and int(ids.max()) >= vocabulary:
        raise bad_request(f"the tokenizer gives id {int(ids.max())}, but the model has a vocabulary of {vocabulary}")
    inputs = {"input_ids": ids}
    if "attention_mask" in takes:
        inputs["attention_mask"] = mask
    return inputs


def rows_of_ids(job, config, tokenizer, generator):
    """Token ids, one list a row. There are as many rows as the batch size says,
    and at least one a prompt; prompts are repeated to fill the batch."""
    import torch

    length = job.sequence_length
    if tokenizer is None:
        if job.prompts:
            raise bad_request("prompts were given, but the model has no tokenizer that loads")
        vocabulary = getattr(_text_config(config), "vocab_size", 0)
        if not vocabulary:
            raise unsupported("the configuration has no vocab_size and there is no tokenizer: no token ids can be made")
        shape = (job.batch_size, length or DEFAULT_RANDOM_TOKENS)
        return torch.randint(0, vocabulary, shape, generator=generator).tolist()
    prompts = job.prompts or [DEFAULT_PROMPT]
    ids = [tokenizer(p)["input_ids"] for p in prompts]
    if any(not row for row in ids):
        raise bad_request("a prompt gives no tokens")
    if not job.prompts and length:  # the default text fills the length that was asked for
        ids = [(row * (length // len(row) + 1))[:length] for row in ids]
    rows = max(job.batch_size, len(ids))
    return [ids[i % len(ids)] for i in range(rows)]


def _text_config(config):
    get = getattr(config, "get_text_config", None)
    return get() if get is not None else config


def _check_length(config, width):
    limit = getattr(_text_config(config), "max_position_embeddings", None)
    if isinstance(limit, int) and 0 < limit < width:
        raise bad_request(f"sequence length {width}: the model has {limit} positions (max_position_embeddings)")


def _pad_id(config, tokenizer):
    choices = [getattr(tokenizer, "pad_token_id", None), getattr(config, "pad_token_id", None), getattr(config, "eos_token_id", None)]
    for choice in choices:
        if isinstance(choice, int) and choice >= 0:
            return choice
    return 0


def _dual_encoder(config):
    """Contrastive models take both sides at once; chat models with a vision
    tower run on text alone."""
    return hasattr(config, "vision_config") and hasattr(config, "text_config") and hasattr(config, "projection_dim")


def pixels(job, config, generator, rows=None):
    import torch

    holder = getattr(config, "vision_config", config)
    size = job.options.get("image_size") or getattr(holder, "image_size", None)
    if size is None:
        size = 224
    if isinstance(size, dict):
        size = (size["height"], size["width"])
    height, width = (size, size) if isinstance(size, int) else tuple(size)[:2]
    channels = getattr(holder, "num_channels", 3)
    shape = [rows or job.batch_size, channels, height, width]
    frames = getattr(holder, "num_frames", None)
    if isinstance(frames, int):  # video models: batch, frames, channels, height, width
        shape.insert(1, frames)
    return torch.randn(shape, generator=generator)


def audio(job, config, main, generator):
    import torch

    batch = job.batch_size
    if main == "input_features" and hasattr(config, "num_mel_bins") and hasattr(config, "max_source_positions"):
        frames = 2 * config.max_source_positions  # the encoder halves them and insists on all
        if config.model_type == "whisper":
            return torch.randn(batch, config.num_mel_bins, frames, generator=generator)
    if main == "input_features" and hasattr(config, "input_feat_per_channel"):
        return torch.randn(batch, job.sequence_length or 64, config.input_feat_per_channel, generator=generator)
    if main == "input_values" and hasattr(config, "max_length") and hasattr(config, "num_mel_bins"):
        return torch.randn(batch, config.max_length, config.num_mel_bins, generator=generator)
    if main == "input_values" and hasattr(config, "conv_stride"):
        return torch.randn(batch, job.sequence_length or DEFAULT_AUDIO_SAMPLES, generator=generator)
    raise unsupported(f"no audio input is known for {config.model_type} ({main})")


def decoder_ids(inputs, config):
    import torch

    start = getattr(config, "decoder_start_token_id", None)
    start = start if isinstance(start, int) else (getattr(config, "bos_token_id", None) or 0)
    rows = next(v for v in inputs.values() if hasattr(v, "shape")).shape[0]
    vocabulary = getattr(_text_config(config), "vocab_size", 1)
    ids = torch.arange(rows * DECODER_TOKENS).reshape(rows, DECODER_TOKENS) % vocabulary
    ids[:, 0] = start
    return ids


def labels(model, family, config, inputs):
    """What the model's own loss needs, or nothing where it has no loss."""
    import torch

    takes = signature(model)
    first = next(v for v in inputs.values() if isinstance(v, torch.Tensor))
    rows, device = first.shape[0], first.device
    if family == "question_answering" and "start_positions" in takes:
        zero = torch.zeros(rows, dtype=torch.long, device=device)
        return {"start_positions": zero, "end_positions": zero.clone()}
    if "return_loss" in takes and "pixel_values" in inputs and rows > 1:
        return {"return_loss": True}  # pairs of the batch against each other; one pair has no loss
    if "labels" not in takes:
        return {}
    if family in ("sequence_classification", "image_classification", "video_classification", "audio_classification"):
        kind = torch.float32 if getattr(config, "problem_type", None) == "regression" or config.num_labels == 1 else torch.long
        return {"labels": torch.zeros(rows, dtype=kind, device=device)}
    if family == "token_classification":
        return {"labels": torch.zeros_like(inputs["input_ids"])}
    if family in ("seq2seq_lm", "speech_seq2seq") and "decoder_input_ids" in inputs:
        return {"labels": inputs["decoder_input_ids"].clone()}
    if family == "ctc":
        return {"labels": torch.ones(rows, 2, dtype=torch.long, device=device)}
    if "input_ids" not in inputs:
        return {}
    ids = inputs["input_ids"].clone()
    if "attention_mask" in inputs:
        ids[inputs["attention_mask"] == 0] = IGNORED
    extra = {"next_sentence_label": torch.zeros(rows, dtype=torch.long, device=device)} if "next_sentence_label" in takes else {}
    return {"labels": ids, **extra}


def load_tokenizer(job, path):
    """The tokenizer, or None with the reason where it does not load."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(path, trust_remote_code=job.trust_remote_code, local_files_only=True), None
    except Exception as error:  # a broken tokenizer may raise anything; ids can be drawn without one
        return None, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def shapes(inputs):
    return {
        k: {"shape": list(v.shape), "dtype": str(v.dtype).removeprefix("torch.")} if hasattr(v, "shape") else v for k, v in inputs.items()
    }
