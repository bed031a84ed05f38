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


T5 = {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1, "num_decoder_layers": 1, "num_heads": 2, "decoder_start_token_id": 2, **TEXT}
WHISPER = {
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
WAV = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "conv_dim": [16, 16],
    "conv_kernel": [10, 8],
    "conv_stride": [5, 4],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": 40,
    "num_labels": 3,
}
SERIES = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 8}
SPECTROGRAM = {"max_length": 32, "num_mel_bins": 16, "patch_size": 8, "frequency_stride": 8, "time_stride": 8}


def chat_with_images():
    vision = {**VISION, "projection_dim": 32, "num_channels": 3}
    text = {k: v for k, v in LLAMA.items() if k != "tie_word_embeddings"}
    return t.LlavaConfig(vision_config=t.CLIPVisionConfig(**vision), text_config=t.LlamaConfig(**text), image_token_index=319)


def contrastive():
    text = {**BERT, "max_position_embeddings": 64, "eos_token_id": 1, "bos_token_id": 0}
    return t.CLIPConfig(text_config=text, vision_config=VISION, projection_dim=16)


def families():
    """A model of each family that the worker knows."""
    yield "t5", t.T5ForConditionalGeneration(t.T5Config(**T5)), True
    yield "bert", t.BertForMaskedLM(t.BertConfig(**BERT)), True
    yield "bert_classifier", t.BertForSequenceClassification(t.BertConfig(**BERT, num_labels=3)), True
    yield "bert_regression", t.BertForSequenceClassification(t.BertConfig(**BERT, num_labels=1)), True
    yield "bert_tokens", t.BertForTokenClassification(t.BertConfig(**BERT, num_labels=3)), True
    yield "bert_answers", t.BertForQuestionAnswering(t.BertConfig(**BERT)), True
    yield "bert_pretraining", t.BertForPreTraining(t.BertConfig(**BERT)), True
    yield "bert_base", t.BertModel(t.BertConfig(**BERT)), True
    yield "gpt2", t.GPT2LMHeadModel(t.GPT2Config(n_embd=32, n_layer=3, n_head=2, n_positions=64, **TEXT)), True
    yield "vit", t.ViTForImageClassification(t.ViTConfig(**VISION, num_labels=3)), False
    yield "vit_base", t.ViTModel(t.ViTConfig(**VISION)), False
    video = {**VISION, "num_frames": 2, "tubelet_size": 2, "num_labels": 3}
    yield "video", t.VideoMAEForVideoClassification(t.VideoMAEConfig(**video)), False
    yield "whisper", t.WhisperForConditionalGeneration(t.WhisperConfig(**WHISPER)), False
    yield "wav2vec_ctc", t.Wav2Vec2ForCTC(t.Wav2Vec2Config(**WAV)), False
    yield "wav2vec_classifier", t.Wav2Vec2ForSequenceClassification(t.Wav2Vec2Config(**WAV)), False
    audio = {k: v for k, v in VISION.items() if k not in ("image_size", "patch_size")}
    yield "spectrogram", t.ASTForAudioClassification(t.ASTConfig(**audio, **SPECTROGRAM, num_labels=3)), False
    yield "llava", t.LlavaForConditionalGeneration(chat_with_images()), True
    yield "clip", t.CLIPModel(contrastive()), True


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
    llama = t.LlamaForCausalLM(t.LlamaConfig(**LLAMA))
    for name, model, with_tokenizer in [("llama", llama, True), *((f"families/{n}", *rest) for n, *rest in families())]:
        model.save_pretrained(directory / name)
        if with_tokenizer:
            words.save_pretrained(directory / name)
    for name, config, architecture in configs():
        config.architectures = [architecture]
        config.save_pretrained(directory / name)
    unknown = directory / "families" / "unknown"
    unknown.mkdir()
    (unknown / "config.json").write_text(json.dumps({"model_type": "nothing_known", "architectures": ["NothingForNobody"]}))
    series = t.TimesFmModelForPrediction(t.TimesFmConfig(**SERIES))
    series.save_pretrained(directory / "families" / "series")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
