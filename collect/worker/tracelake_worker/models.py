"""Loads a Hugging Face model: which class, which dtype, with or without weights."""

import contextlib
import inspect

from .errors import WorkerError, bad_request, unsupported

# Which family an architecture belongs to, asked from transformers itself. The
# order decides for classes that stand in several of its maps.
FAMILIES = (
    ("causal_lm", "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "AutoModelForCausalLM"),
    ("speech_seq2seq", "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES", "AutoModelForSpeechSeq2Seq"),
    ("image_text_to_text", "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES", "AutoModelForImageTextToText"),
    ("seq2seq_lm", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", "AutoModelForSeq2SeqLM"),
    ("masked_lm", "MODEL_FOR_MASKED_LM_MAPPING_NAMES", "AutoModelForMaskedLM"),
    ("sequence_classification", "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES", "AutoModelForSequenceClassification"),
    ("token_classification", "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES", "AutoModelForTokenClassification"),
    ("question_answering", "MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES", "AutoModelForQuestionAnswering"),
    ("image_classification", "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES", "AutoModelForImageClassification"),
    ("video_classification", "MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING_NAMES", "AutoModelForVideoClassification"),
    ("ctc", "MODEL_FOR_CTC_MAPPING_NAMES", "AutoModelForCTC"),
    ("audio_classification", "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES", "AutoModelForAudioClassification"),
    ("pretraining", "MODEL_FOR_PRETRAINING_MAPPING_NAMES", "AutoModelForPreTraining"),
    ("base", "MODEL_MAPPING_NAMES", "AutoModel"),
)

# Names under which configurations say how many layers there are; transformers
# maps most of them to num_hidden_layers, encoder-decoders have two.
LAYER_NAMES = (
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "num_decoder_layers",
    "encoder_layers",
    "decoder_layers",
    "num_encoder_layers",
)


def load_config(job, path):
    from transformers import AutoConfig

    with _remote_code_refused(job):
        config = AutoConfig.from_pretrained(path, trust_remote_code=job.trust_remote_code, local_files_only=True)
    if job.layers is not None:
        config = truncated(config, job.layers)
    return config


def truncated(config, layers):
    """The configuration with at most that many layers in every stack of it."""
    raw = config.to_dict()
    if not truncate(raw, layers):
        raise bad_request(f"layers {layers}: the configuration of {config.model_type} has none of {', '.join(LAYER_NAMES)}")
    # Derived on loading, and wrong for the shorter stack.
    raw.pop("transformers_version", None)
    return type(config).from_dict(raw)


def truncate(raw, layers):
    found = False
    for name in LAYER_NAMES:
        count = raw.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            found = True
            if count > layers:
                raw[name] = layers
                for key, value in raw.items():  # one entry a layer: layer_types and its like
                    if isinstance(value, list) and len(value) == count:
                        raw[key] = value[:layers]
    for value in raw.values():
        if isinstance(value, dict):
            found = truncate(value, layers) or found
    return found


def architecture(config):
    names = getattr(config, "architectures", None) or []
    return names[0] if names else ""


def family(config):
    """The family of the model, and the Auto class that would load it."""
    from transformers.models.auto import modeling_auto

    name = architecture(config)
    for kind, mapping, auto in FAMILIES:
        for value in getattr(modeling_auto, mapping, {}).values():
            if name and name in ((value,) if isinstance(value, str) else value):
                return kind, auto
    remote = getattr(config, "auto_map", None) or {}
    for kind, _, auto in FAMILIES:
        if auto in remote:
            return kind, auto
    return "base", "AutoModel"


def model_class(job, config):
    """(class, family). An architecture of transformers itself is taken as the
    configuration names it; remote code goes through its Auto class."""
    import transformers

    name = architecture(config)
    kind, auto = family(config)
    remote = getattr(config, "auto_map", None) or {}
    if not (job.trust_remote_code and auto in remote):
        exact = getattr(transformers, name, None) if name else None
        if isinstance(exact, type) and issubclass(exact, transformers.PreTrainedModel):
            return exact, kind
    if name and not remote and kind == "base" and not _has_base(config):
        raise unsupported(f"architecture {name} is none that transformers {transformers.__version__} has")
    return getattr(transformers, auto), kind


def _has_base(config):
    from transformers.models.auto import modeling_auto

    return getattr(config, "model_type", None) in modeling_auto.MODEL_MAPPING_NAMES


def load(job, path, config, device):
    """(model, family), in eval mode, on the device. With dummy weights the
    parameters are drawn from the job's seed and no weight file is read."""
    import torch

    cls, kind = model_class(job, config)
    dtype = None if job.dtype == "auto" else getattr(torch, job.dtype)
    kwargs = {}
    attention = job.options.get("attn_implementation")
    if attention:
        kwargs["attn_implementation"] = attention
    with _remote_code_refused(job):
        if job.dummy_weights:
            model = from_config(job, cls, config, dtype or config_dtype(config), device, **kwargs)
        else:
            if "Auto" in cls.__name__:
                kwargs["trust_remote_code"] = job.trust_remote_code
            model = cls.from_pretrained(path, config=config, dtype=dtype or "auto", local_files_only=True, **kwargs)
    return model.to(device).eval(), kind


def from_config(job, cls, config, dtype, device, **kwargs):
    """A model with fresh parameters, made directly on the device."""
    import torch

    torch.manual_seed(job.seed)
    make = cls.from_config if "Auto" in cls.__name__ else cls._from_config
    if "Auto" in cls.__name__:
        kwargs["trust_remote_code"] = job.trust_remote_code
    with torch.device(device):
        return make(config, dtype=dtype, **kwargs)


def config_dtype(config):
    """The dtype that the configuration names, float32 where it names none."""
    import torch

    for holder in (config, getattr(config, "text_config", None)):
        dtype = getattr(holder, "dtype", None) or getattr(holder, "torch_dtype", None)
        if isinstance(dtype, str):
            dtype = getattr(torch, dtype, None)
        if isinstance(dtype, torch.dtype):
            return dtype
    return torch.float32


@contextlib.contextmanager
def _remote_code_refused(job):
    """transformers asks on a terminal, or raises, when a model brings code."""
    try:
        yield
    except (ValueError, EOFError) as error:
        if "trust_remote_code" in str(error) and not job.trust_remote_code:
            raise unsupported("the model brings its own code; run it with trust_remote_code if you trust it") from error
        if "does not recognize this architecture" in str(error):
            import transformers

            raise unsupported(f"transformers {transformers.__version__} does not know the model type that config.json names") from error
        raise


def signature(model):
    """Names that the model's forward takes."""
    return set(inspect.signature(model.forward).parameters)


def check_device(name):
    """The device by name, or a clear refusal."""
    import torch

    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise bad_request(f"device {name!r}: {error}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise WorkerError("unsupported", f"device {name!r}: this torch {torch.__version__} sees no CUDA device")
    if device.type == "cuda" and device.index is not None and device.index >= torch.cuda.device_count():
        raise bad_request(f"device {name!r}: there are {torch.cuda.device_count()} devices")
    return device
