// heed probe dino, dino_head: loss and centre of self-distillation, and the head, on given tensors.
#include "probe.h"

#include "heed/nn/dino.h"
#include "heed/tape/preparation.h"
#include "heed/train/tasks/teaching.h"

namespace heed::cli {

namespace {

/// Maps rows between the probe's order, view by view, and that of dino_loss(): calls f(row of [V, B, K], row of
/// logits).
template <class F>
void for_rows(Index views, Index images, const F& f) {
  for (Index v = 0; v < views; ++v)
    for (Index b = 0; b < images; ++b) f(v * images + b, v < 2 ? 2 * b + v : 2 * images + (views - 2) * b + v - 2);
}

template <class T>
void probe_dino(const ProbeArguments& a, GivenTensors& in, ProbeOutput<T>& results) {
  DinoConfig dino;
  read_sets(a, "dino", [&](OptionReader& reader) {
    reader("student_temp", dino.student_temp, "temperature of the student's outputs");
    reader("teacher_temp", dino.teacher_temp, "temperature of the teacher's outputs");
    reader("center_momentum", dino.center_momentum, "decay of the centre");
  });
  for (const auto& [key, temperature] :
       {std::pair("student_temp", dino.student_temp), {"teacher_temp", dino.teacher_temp}})
    require(temperature >= least_temperature, "--set: {} = {}; expected at least {}", key, temperature,
            least_temperature);
  require(dino.center_momentum >= 0 && dino.center_momentum <= 1, "--set: center_momentum = {}; expected 0 to 1",
          dino.center_momentum);
  const Tensor<T> student = in.take<T>("student", 3);
  const Shape& s = student.shape();
  const Index views = s[0], images = s[1], K = s[2];
  require(views >= 2, "{}: tensor 'student' has shape {}; expected [V, B, K] with two views or more", in.path(), s);
  const Tensor<T> teacher = in.take<T>("teacher", Shape{2, images, K});
  Tensor<T> center = in.take<T>("center", Shape{K});
  in.finish();

  Tensor<T> logits(Shape{views * images, K}), of_teacher(Shape{images, 2, K}), gradient(s);
  for_rows(views, images, [&](Index given, Index row) {
    std::copy_n(student.data() + given * K, K, logits.data() + row * K);
    if (given < 2 * images) std::copy_n(teacher.data() + given * K, K, of_teacher.data() + row * K);
  });
  const Teaching<T> teaching = teach(std::as_const(of_teacher).view(), std::as_const(center).view(), dino.teacher_temp);
  move_center(center.view(), teaching.mean.view(), dino.center_momentum);
  Tape<T> tape;
  const Var<T> x = tape.input(logits.view());
  const Var<T> loss = dino_loss(x, teaching.q.view(), dino.student_temp, images * 2 * (views - 1));
  results.add("loss", loss.value());
  tape.backward(loss);
  for_rows(views, images, [&](Index given, Index row) {
    std::copy_n(tape.gradient(x).data() + row * K, K, gradient.data() + given * K);
  });
  results.add("center", std::as_const(center).view());
  results.add("grad.student", std::as_const(gradient).view());
}

template <class T>
void probe_dino_head(const ProbeArguments&, GivenTensors& in, ProbeOutput<T>& results) {
  const Tensor<T> x = in.take<T>("x", 2);
  // The weights determine the sizes of the head.
  const auto rows_of = [&](const std::string& name) {
    const Shape& shape = in.shape(name);
    require(shape.rank() == 2, "{}: tensor '{}' has shape {}; expected 2 axes", in.path(), name, shape);
    return shape[0];
  };
  DinoConfig config;
  config.hidden = rows_of("mlp.0.weight");
  config.bottleneck = rows_of("mlp.4.weight");
  config.out_dim = rows_of("last_layer.weight_v");
  config.norm_last_layer = !in.contains("last_layer.weight_g");
  ParameterList list;
  const DinoHead head(list, "", x.shape()[1], config);
  const Tensor<T> dout = in.take_if_given<T>("grad_out", Shape{x.shape()[0], config.out_dim});
  Parameters<T> parameters(list);
  for (ParameterId id = 0; id < list.size(); ++id) {
    if (list[id].prepared) continue;
    const Tensor<T> given = in.take<T>(list[id].name, list[id].shape);
    std::ranges::copy(given, parameters[id].begin());
  }
  in.finish();

  Gradients<T> gradients(parameters);
  gradients.reset();
  prepare(PreparationPass<T>{&parameters});
  Tape<T> tape({.parameters = &parameters, .gradients = &gradients, .prepared = true});
  const Var<T> vx = tape.input(x.view()), out = head(vx);
  results.add("out", out.value());
  if (dout.size() == 0) return;
  tape.backward(out, dout.view());
  gradients.complete();
  prepare_backward(PreparationPass<T>{&parameters, &gradients});
  results.add("grad.x", tape.gradient(vx));
  for (ParameterId id = 0; id < list.size(); ++id)
    if (!list[id].prepared) results.add("grad." + list[id].name, std::as_const(gradients)[id]);
}

}  // namespace

const Probe dino_probe{
    .name = "dino",
    .summary = "loss, gradient and centre of self-distillation (DINO)",
    .sets = "student_temp=0.1, teacher_temp=0.04, center_momentum=0.9; repeatable",
    .contract =
        "IN   student [V,B,K], the two large views first; teacher [2,B,K]; center [K]\n"
        "OUT  loss, center (after the step), grad.student [V,B,K]\n"
        "loss is the mean of -q_i log p_j over the teacher's views i, the student's views j other than i, and the "
        "batch, with q = softmax((teacher - center) / teacher_temp), through which no gradient flows, and "
        "p = softmax(student / student_temp). Then center = center_momentum center + (1 - center_momentum) "
        "mean(teacher).",
    .run = {probe_dino<float>, probe_dino<double>},
};

const Probe dino_head_probe{
    .name = "dino_head",
    .summary = "out and gradients of the head used in self-distillation (DINO)",
    .contract =
        "IN   x [B,D], mlp.0.weight [h,D], mlp.0.bias [h], mlp.2.weight [h,h], mlp.2.bias [h], mlp.4.weight [b,h],\n"
        "     mlp.4.bias [b], last_layer.weight_v [K,b], optionally last_layer.weight_g [K,1]; grad_out [B,K]\n"
        "     for gradients\n"
        "OUT  out [B,K]; with grad_out also grad.x and grad.NAME of each tensor\n"
        "Three layers with GELU between them, division by the L2 norm, and a layer whose row k is g v / |v|; without "
        "weight_g, g is 1.",
    .run = {probe_dino_head<float>, probe_dino_head<double>},
};

}  // namespace heed::cli
