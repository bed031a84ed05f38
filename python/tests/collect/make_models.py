"""Makes tiny random models, laid out as on the hub. Run with a Python that has
torch and transformers: make_models.py DIRECTORY"""

import json
import sys
from pathlib import Path

import torch
import transformers as t
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 300
SPECIAL = ["<s>", "</s>", "<pad>", "<mask>"]
CORPUS = ["the quick brown fox jumps over the lazy dog", "every kernel has an operator", "once more with feeling"]


def tokenizer():
    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    plain.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet))
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}
    return t.PreTrainedTokenizerFast(tokenizer_object=plain, model_max_length=128, **special)


TEXT = {"vocab_size": 320, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
LLAMA = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
    **TEXT,
}
BERT = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 320, "pad_token_id": 2}
VISION = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 16, "patch_size": 8}


def made():
    yield "llama", t.LlamaForCausalLM(t.LlamaConfig(**LLAMA)), True
    t5 = {
        "d_model": 32,
        "d_kv": 16,
        "d_ff": 48,
        "num_layers": 1,
        "num_decoder_layers": 1,
        "num_heads": 2,
        "decoder_start_token_id": 2,
        **TEXT,
    }
    yield "t5", t.T5ForConditionalGeneration(t.T5Config(**t5)), True
    yield "bert", t.BertForMaskedLM(t.BertConfig(**BERT)), True
    yield "bert_classifier", t.BertForSequenceClassification(t.BertConfig(**BERT, num_labels=3)), True
    yield "bert_base", t.BertModel(t.BertConfig(**BERT)), True
    yield "gpt2", t.GPT2LMHeadModel(t.GPT2Config(n_embd=32, n_layer=3, n_head=2, n_positions=64, **TEXT)), True
    yield "vit", t.ViTForImageClassification(t.ViTConfig(**VISION, num_labels=3)), False
    whisper = {
        "d_model": 32,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "num_mel_bins": 8,
        "max_source_positions": 16,
        "max_target_positions": 32,
        "decoder_start_token_id": 1,
        **TEXT,
    }
    yield "whisper", t.WhisperForConditionalGeneration(t.WhisperConfig(**whisper)), False


def configs():
    """Configurations without any weights."""
    yield (
        "mixtral",
        t.MixtralConfig(num_local_experts=4, num_experts_per_tok=2, **{k: v for k, v in LLAMA.items() if k != "tie_word_embeddings"}),
        "MixtralForCausalLM",
    )
    yield "llama_8b", big_llama(), "LlamaForCausalLM"


def big_llama():
    return t.LlamaConfig(
        vocab_size=128256,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        dtype="bfloat16",
    )


def main(directory):
    torch.manual_seed(0)
    words = tokenizer()
    for name, model, with_tokenizer in made():
        model.save_pretrained(directory / name)
        if with_tokenizer:
            words.save_pretrained(directory / name)
    for name, config, architecture in configs():
        config.architectures = [architecture]
        config.save_pretrained(directory / name)
    broken = directory / "unknown"
    broken.mkdir()
    (broken / "config.json").write_text(json.dumps({"model_type": "nothing_known", "architectures": ["NothingForNobody"]}))
    series = directory / "series"
    series.mkdir()
    t.TimesFmConfig(architectures=["TimesFmModelForPrediction"]).save_pretrained(series)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
