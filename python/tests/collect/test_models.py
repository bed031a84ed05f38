"""Families of models: each is given what its forward takes, and its training
step has labels, a loss of the model's own, a backward pass and an optimizer."""

import collections
import json
import math

import pytest
from tracelake_worker import models

WORDS = {"input_ids", "attention_mask"}
# model: (family, inputs without labels, labels). Models without labels have no loss of their own.
FAMILIES = {
    "gpt2": ("causal_lm", WORDS, {"labels"}),
    "llava": ("image_text_to_text", WORDS, {"labels"}),
    "t5": ("seq2seq_lm", WORDS | {"decoder_input_ids"}, {"labels"}),
    "whisper": ("speech_seq2seq", {"input_features", "decoder_input_ids"}, {"labels"}),
    "bert": ("masked_lm", WORDS, {"labels"}),
    "bert_classifier": ("sequence_classification", WORDS, {"labels"}),
    "bert_regression": ("sequence_classification", WORDS, {"labels"}),
    "bert_tokens": ("token_classification", WORDS, {"labels"}),
    "bert_answers": ("question_answering", WORDS, {"start_positions", "end_positions"}),
    "bert_pretraining": ("pretraining", WORDS, {"labels", "next_sentence_label"}),
    "vit": ("image_classification", {"pixel_values"}, {"labels"}),
    "video": ("video_classification", {"pixel_values"}, {"labels"}),
    "wav2vec_ctc": ("ctc", {"input_values"}, {"labels"}),
    "wav2vec_classifier": ("audio_classification", {"input_values"}, {"labels"}),
    "spectrogram": ("audio_classification", {"input_values"}, {"labels"}),
    "clip": ("base", WORDS | {"pixel_values"}, {"return_loss"}),
    "bert_base": ("base", WORDS, set()),
    "vit_base": ("base", {"pixel_values"}, set()),
}
# The vision tower of a chat model is not run: its inputs are text.
UNTRAINED = {"llava": "vision", "bert_base": "pooler", "vit_base": "pooler"}


def test_every_family_is_here():
    assert {kind for kind, _, _ in models.FAMILIES} == {family for family, _, _ in FAMILIES.values()}


@pytest.mark.runs("families/train")
@pytest.mark.parametrize("model", FAMILIES)
def test_training_step(run_of, model):
    family, inputs, labels = FAMILIES[model]
    details = run_of("families/train").json("families.json")[model]["details"]
    assert details["family"] == family
    assert set(details["inputs"]) - {"use_cache"} == inputs | labels
    rows = {v["shape"][0] for v in details["inputs"].values() if isinstance(v, dict)}
    assert rows == {2}
    assert details["loss_kind"] == ("model" if labels else "mean_square_of_output")
    before, after = details["loss"]
    assert math.isfinite(before) and after != before
    if model in UNTRAINED:
        assert 0 < details["parameters_changed"] < details["parameters"]
    else:
        assert details["parameters_changed"] == details["parameters"] > 0
    if model == "bert_regression":
        assert details["inputs"]["labels"]["dtype"] == "float32"


@pytest.mark.runs("families/train", "families/eval")
def test_phases(run_of):
    for mode, ranges in (("train", ["backward", "forward", "optimizer"]), ("eval", ["forward"])):
        found = run_of(f"families/{mode}").json("families.json")
        for model, (_, inputs, _) in FAMILIES.items():
            assert found[model]["ranges"] == ranges, model
            if mode == "eval":
                assert set(found[model]["details"]["inputs"]) - {"use_cache"} == inputs, model


@pytest.mark.runs("families/eval")
def test_models_that_cannot_be_run(run_of):
    found = run_of("families/eval").json("families.json")
    assert found["series"]["error"] == found["unknown"]["error"] == "unsupported"
    assert "past_values" in found["series"]["message"] and "model type" in found["unknown"]["message"]


@pytest.mark.runs("speech")
def test_a_real_tracer_of_another_family(run_of):
    answer = run_of("speech")
    rows = answer.table("ops")
    phases = collections.Counter(r.get("phase") for r in rows)
    assert phases["forward"] and phases["backward"] and phases["optimizer"]
    assert any(r["name"] == "aten::convolution_backward" for r in rows)
    assert {r["module"].split(".")[1] for r in rows if r.get("module", "").startswith("model.")} >= {"encoder", "decoder"}


@pytest.mark.runs("shaped")
def test_shape_of_the_batch(run_of):
    details = run_of("shaped").details
    assert details["inputs"]["input_ids"]["shape"] == [2, 8]
    assert details["parameters"] == 3 + 9  # one layer of two
    names = {r["module"] for r in run_of("shaped").table("ops") if r.get("module", "").startswith("model.layers.")}
    assert {n.split(".")[2] for n in names} == {"0"}


@pytest.mark.runs("prompts")
def test_prompts_fill_the_batch(run_of):
    answer = run_of("prompts")
    ids = answer.details["inputs"]["input_ids"]["shape"]
    assert ids[0] == 3 and answer.details["inputs"]["attention_mask"]["shape"] == ids


@pytest.mark.runs("layers_alias")
def test_layers_by_another_name(run_of):
    layers = {r["module"].split(".")[2] for r in run_of("layers_alias").table("ops") if r.get("module", "").startswith("transformer.h.")}
    assert layers == {"0"}


@pytest.mark.runs("experts")
def test_mixture_of_experts_without_weights(run_of):
    answer = run_of("experts")
    assert answer.details["flops"] > 0
    assert any("experts" in r.get("module", "") for r in answer.table("ops"))


@pytest.mark.runs("eight_billion")
def test_eight_billion_parameters_without_weights(run_of):
    """All of it by hand: 8.03e9 parameters; every weight but the embedding is a
    product with each token, and attention is two products a head."""
    answer = run_of("eight_billion")
    summary = answer.json("meta_ops.json")
    assert summary["parameters"] == 8_030_261_248
    tokens, layers, hidden, heads, head = 512, 32, 4096, 32, 128
    products = 8_030_261_248 - 128256 * hidden - (2 * layers + 1) * hidden
    attention = layers * heads * 2 * 2 * tokens * tokens * head
    assert summary["flops"] == 2 * tokens * products + attention
    rows = answer.table("ops")
    assert sum(r["name"] == "aten::mm" for r in rows) == 7 * layers + 1
    assert json.loads(next(r for r in rows if r["name"] == "aten::mm")["inputs_json"])[1]["dtype"] == "bfloat16"
