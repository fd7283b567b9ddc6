// What the files of heed probe hold: the text below its options.
#pragma once

namespace heed::cli {

inline constexpr const char* probe_contract =
    "IN and OUT are safetensors files. Tensors of F64 are computed in double, of F32 in the float code that trains.\n"
    "Each tensor must be there, of its shape and finite, and no other: else one line says which, and no OUT is left.\n"
    "`heed probe attention --help`, `linear --help` and so on list tensors, shapes and options.";

inline constexpr const char* probe_attention_contract =
    "IN   q [B,H,N,D], k [B,H,M,D], v [B,H,M,E], as far as the mechanism takes them; its own tensors and buffers by\n"
    "     name, as `heed list NAME` shows them; grad_out [B,H,N,E], the gradient of the result; gumbel, where the\n"
    "     mechanism draws random numbers, with mode=train or where it is given.\n"
    "OUT  out [B,H,N,E]; grad.q, grad.k, grad.v and grad.NAME of each trainable tensor, in their shapes; map "
    "[B,H,N,M]\n"
    "     where the mechanism has one ([B,H,D,D] among channels).\n"
    "B images, H heads, N queries, M keys, D and E channels. Sizes such as a rank are read from the tensors.\n"
    "--grid HxW says that the N tokens are H x W patches; one more is a class token in front. --set takes the\n"
    "mechanism's options, mode=train or eval (default), and cls=true or false: is there a class token, without "
    "--grid.\n\n"
    "  heed probe attention --mechanism softmax in.safetensors out.safetensors";

inline constexpr const char* probe_linear_contract =
    "IN   x [N,I], weight [O,I], bias [O], grad_out [N,O]\n"
    "OUT  out [N,O], grad.x, grad.weight, grad.bias\n"
    "--set kind=mul (default): out = x weight^T + bias. kind=adder: minus the l1 distances of rows of x and weight, "
    "plus\n"
    "bias; input_grad=sign|hardtanh, weight_grad=sign|hardtanh|full, weight_scale=none|adaptive say how it is\n"
    "differentiated (`heed help experiment`).\n\n"
    "  heed probe linear --set kind=adder in.safetensors out.safetensors";

inline constexpr const char* probe_model_contract =
    "IN   images [B,C,H,W], used as given, without normalisation; labels [B] (I64), 0 to classes - 1\n"
    "OUT  logits [B,classes], loss (the mean cross entropy), grad.NAME of each trainable tensor\n"
    "With output = \"tokens\" each of the n patches has a label: labels [B,n], logits [B,n,classes].\n"
    "A model of sequences takes tokens [B,T] (I64) in place of images, T up to context, and computes in the weights'\n"
    "number type. task = \"lm\": targets [B,T], -1 where there is none, and logits [B,T,vocab]. task = \"classify\":\n"
    "labels [B], and lengths [B] where not all are T. task = \"pair\": tokens2 and lengths2 too.\n"
    "--weights holds the model's tensors by timm's names; --set overrides keys of MODEL.\n\n"
    "  heed probe model models/vit-micro.toml --weights w.safetensors IN OUT";

inline constexpr const char* probe_decode_contract =
    "IN   tokens [B,T] (I64), 0 to vocab - 1, T up to context\n"
    "OUT  logits [B,T,vocab], in the number type of the weights: row t follows input t\n"
    "Input t is token t, or, with start = true, the start token and then token t - 1: the last one is not looked at.\n"
    "Each input is taken alone, with the state that those before it have left, as `heed generate` takes it.\n\n"
    "  heed probe decode models/text-micro.toml --weights w.safetensors IN OUT";

inline constexpr const char* probe_knn_contract =
    "IN   train [n,D], train_labels [n] (I64), test [m,D]\n"
    "OUT  scores [m,C], prediction [m] (I64): the first largest score; C is the largest label and one\n"
    "A class scores the sum of exp(cosine / temperature) over those of the k nearest training rows that are of it.";

inline constexpr const char* probe_ridge_contract =
    "IN   train [n,D], train_labels [n] (I64), test [m,D]\n"
    "OUT  scores [m,C], prediction [m] (I64): the first largest score; C is the largest label and one\n"
    "Features x become (x - mean) / (deviation + 1e-5), both over the training rows, and a column of bias is added;\n"
    "W = (X^T X + l2 I)^-1 X^T Y with targets 1 of the class and -1 of the others, in double; scores = x W.";

inline constexpr const char* probe_dino_contract =
    "IN   student [V,B,K], the two large views first; teacher [2,B,K]; center [K]\n"
    "OUT  loss, center (after the step), grad.student [V,B,K]\n"
    "The mean over the teacher's views i, the student's views j but i, and the batch, of -q_i log p_j with\n"
    "q = softmax((teacher - center) / teacher_temp), through which no gradient goes, and p = softmax(student /\n"
    "student_temp). Then center = center_momentum center + (1 - center_momentum) mean(teacher).";

inline constexpr const char* probe_dino_head_contract =
    "IN   x [B,D], mlp.0.weight [h,D], mlp.0.bias [h], mlp.2.weight [h,h], mlp.2.bias [h], mlp.4.weight [b,h],\n"
    "     mlp.4.bias [b], last_layer.weight_v [K,b], perhaps last_layer.weight_g [K,1], grad_out [B,K]\n"
    "OUT  out [B,K], grad.x and grad.NAME of each tensor\n"
    "Three layers with GELU between them, division by the length, and a layer whose row k is g v / |v|, g = 1 where\n"
    "there is no weight_g.";

}  // namespace heed::cli
