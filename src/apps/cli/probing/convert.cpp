// heed convert: weights with other programs' names.
#include "src/apps/cli/shared/commands.h"

#include "heed/io/upstream_weights.h"

namespace heed::cli {

void add_convert(Command program) {
  static std::string in, out;
  Command command = program.command("convert", "Give weights of XCiT's and SOFT's authors the names that heed has");
  command.option("IN", &in, "safetensors with the authors' names", {.required = true});
  command.option("OUT", &out, "safetensors to write, for --init and --weights", {.required = true});
  command.footer(
      "timm's XCiT and ViT and CvT's authors have heed's names already. Older files of XCiT (pos_embeder,\n"
      "cls_attn_blocks.*.attn.qkv) and SOFT's blocks (att.mha.*) are renamed, and cut or joined where q, k and v\n"
      "lie otherwise. Tensors with other names are copied. Prefixes that wrappers put before all names (module.,\n"
      "model., _orig_mod. and so on) are left out.");
  command.action([] {
    convert_weights(in, out);
    return ok;
  });
}

}  // namespace heed::cli
