/** Names of parameters that say how a model was asked, as inspect_ai, lm-evaluation-harness and providers spell them. */
export const PARAMETERS =
  /^(?:temperature|top_p|top_k|min_p|max_tokens|max_gen_toks|do_sample|num_choices|best_of|frequency_penalty|presence_penalty|reasoning_effort|reasoning_tokens)$/;

/** Names of seeds. */
export const SEEDS = /^(?:\w+_)?seed$/;
