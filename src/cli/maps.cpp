#include "commands.h"
namespace heed::cli { void add_maps(CLI::App&, const AddVerb&) {} }
