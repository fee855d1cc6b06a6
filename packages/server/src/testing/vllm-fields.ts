/**
 * Names of the request fields of vLLM's endpoints, as its protocol files declare them
 * (vllm/entrypoints: openai, anthropic, pooling, serve/tokenize, serve/lora).
 */
const words = (text: string): readonly string[] => text.trim().split(/\s+/);

const sampling = `
  model frequency_penalty logit_bias n presence_penalty response_format seed stop stream stream_options temperature top_p
  user use_beam_search top_k min_p repetition_penalty watermarking length_penalty stop_token_ids include_stop_str_in_output
  ignore_eos min_tokens skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens truncation_side
  prompt_logprobs logprob_token_ids allowed_token_ids bad_words max_tokens logprobs echo add_special_tokens
  structured_outputs priority request_id session_id return_tokens_as_token_ids return_token_ids routed_experts_prompt_start
  return_token_offsets return_mm_kwargs cache_salt kv_transfer_params ec_transfer_params vllm_xargs repetition_detection
  stream_interval thinking_token_budget`;

const template = `
  messages add_generation_prompt continue_final_message add_special_tokens chat_template chat_template_kwargs
  media_io_kwargs mm_processor_kwargs`;

const pooling = `
  model user truncate_prompt_tokens padding truncation_side request_id priority mm_processor_kwargs cache_salt
  use_activation`;

const encoding = "encoding_format embed_dtype endianness dimensions";

export const vllmFields: Readonly<Record<string, readonly string[]>> = {
  "/v1/chat/completions":
    words(`${sampling} ${template} top_logprobs max_completion_tokens tools tool_choice reasoning_effort
    include_reasoning parallel_tool_calls documents return_prompt_text`),
  "/v1/completions": words(`${sampling} prompt suffix prompt_embeds`),
  "/v1/responses":
    words(`background include input instructions max_output_tokens max_tool_calls metadata model logit_bias
    parallel_tool_calls previous_response_id prompt reasoning service_tier store stream temperature text tool_choice tools
    top_logprobs top_p top_k truncation user skip_special_tokens include_stop_str_in_output prompt_cache_key request_id
    mm_processor_kwargs priority cache_salt enable_response_messages previous_input_messages previous_response
    structured_outputs repetition_penalty seed stop ignore_eos vllm_xargs`),
  "/v1/messages":
    words(`model messages max_tokens metadata output_config stop_sequences stream system temperature tool_choice
    tools top_k top_p kv_transfer_params chat_template_kwargs`),
  "/v1/messages/count_tokens": words("model messages system tool_choice tools chat_template_kwargs"),
  "/v1/embeddings": words(`${pooling} ${encoding} ${template} input`),
  "/pooling": words(`${pooling} ${encoding} ${template} input task data`),
  "/classify": words(`${pooling} ${template} input`),
  "/score": words(`${pooling} text_1 text_2 data_1 data_2 queries documents items`),
  "/rerank": words(`${pooling} query documents top_n`),
  "/tokenize": words(`${template} prompt model return_token_strs tools`),
  "/detokenize": words("model tokens"),
  "/v1/load_lora_adapter": words("lora_name lora_path load_inplace"),
  "/v1/unload_lora_adapter": words("lora_name lora_int_id"),
};
