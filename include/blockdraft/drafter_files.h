// How a drafter's folder is read, where there is a choice.
#pragma once

namespace blockdraft {

// Which row of the drafted block guesses which token. With the wrong one hardly a draft is accepted; no text changes.
enum class DrafterLayout {
  as_stated,  // by the config
  in_place,   // a row guesses the token of its own position, and the newest token's own row is not used
  shifted,    // a row guesses the token after it
};

// What a model's linear weights are in memory: those of the layers (NAME_proj.weight), of a drafter fc.weight, of a
// target its output head. Smaller ones are quicker to read. Of a drafter they draft a little worse, and no text
// changes; of a target they make it another model, whose texts these are. Weights of this type in the files stay as
// they are, FP8 with whatever scales it has; of other quantized ones the errors of both formats add up.
enum class WeightFormat {
  as_stored,  // mapped from the files
  bf16,       // rounded to nearest even
  fp8,        // E4M3; converted ones with a scale a row
  nvfp4,      // E2M1 with a scale for 16 numbers
  int8,       // with a scale for 32 numbers; their products round activations to int8, too
};

}  // namespace blockdraft
