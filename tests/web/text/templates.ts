// Chat templates of well-known model families, in equivalent form, for the tests. Each comes with the
// prompt it must make of CONVERSATION or SYSTEM_CONVERSATION.

export const CONVERSATION = [
  { role: 'user', content: ' Hi!\n' },
  { role: 'assistant', content: 'Hello.' },
  { role: 'user', content: 'Bye?' },
];
export const SYSTEM_CONVERSATION = [{ role: 'system', content: 'Be brief.' }, ...CONVERSATION];

export interface TemplateCase {
  readonly name: string;
  readonly source: string;
  readonly system: boolean;
  readonly prompt: string;
}

const QWEN25 = `{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
`;

export const QWEN3 = `{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if '</think>' in content %}
            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or reasoning_content) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}`;

const LLAMA2 =
  "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}" +
  "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}" +
  '{% set system_message = false %}{% endif %}{% for message in loop_messages %}' +
  "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}" +
  "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}" +
  '{% if loop.index0 == 0 and system_message != false %}' +
  "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}" +
  "{% else %}{% set content = message['content'] %}{% endif %}" +
  "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}" +
  "{% elif message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}";

const LLAMA3 =
  "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + " +
  "message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' %}" +
  '{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}' +
  "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";

const GEMMA =
  "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}" +
  "{% endif %}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}" +
  "{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + " +
  "message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}";

const PHI3 =
  "{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}" +
  "{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'user' %}" +
  "{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'assistant' %}" +
  "{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}";

const MISTRAL =
  '{%- if messages[0]["role"] == "system" %}\n    {%- set system_message = messages[0]["content"] %}\n' +
  '    {%- set loop_messages = messages[1:] %}\n{%- else %}\n    {%- set loop_messages = messages %}\n{%- endif %}\n' +
  '{{- bos_token }}\n{%- for message in loop_messages %}\n    {%- if message["role"] == "user" %}\n' +
  '        {%- if loop.last and system_message is defined %}\n' +
  '            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}\n' +
  '        {%- else %}\n            {{- "[INST] " + message["content"] + "[/INST]" }}\n        {%- endif %}\n' +
  '    {%- elif message["role"] == "assistant" %}\n        {{- " " + message["content"] + eos_token}}\n' +
  '    {%- endif %}\n{%- endfor %}\n';

const ZEPHYR =
  "{% for message in messages %}\n{% if message['role'] in ['user', 'system', 'assistant'] %}\n" +
  "{{ '<|' + message['role'] + '|>\\n' + message['content'] + eos_token }}\n{% endif %}\n" +
  "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}";

export const CHATML =
  "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}" +
  "{{ '<|im_start|>system\\nYou are a helpful AI assistant.<|im_end|>\\n' }}{% endif %}" +
  "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

const chatml = (system: string): string =>
  `<|im_start|>system\n${system}<|im_end|>\n<|im_start|>user\n Hi!\n<|im_end|>\n` +
  '<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\nBye?<|im_end|>\n<|im_start|>assistant\n';

export const TEMPLATES: readonly TemplateCase[] = [
  {
    name: 'SmolLM',
    source: CHATML,
    system: false,
    prompt: chatml('You are a helpful AI assistant.'),
  },
  { name: 'SmolLM with system', source: CHATML, system: true, prompt: chatml('Be brief.') },
  {
    name: 'Qwen 2.5',
    source: QWEN25,
    system: false,
    prompt: chatml('You are a helpful assistant.'),
  },
  { name: 'Qwen 2.5 with system', source: QWEN25, system: true, prompt: chatml('Be brief.') },
  { name: 'Qwen 3', source: QWEN3, system: true, prompt: chatml('Be brief.') },
  {
    name: 'Llama 2',
    source: LLAMA2,
    system: false,
    prompt: '<s>[INST] Hi! [/INST] Hello. </s><s>[INST] Bye? [/INST]',
  },
  {
    name: 'Llama 2 with system',
    source: LLAMA2,
    system: true,
    prompt:
      '<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\n Hi! [/INST] Hello. </s><s>[INST] Bye? [/INST]',
  },
  {
    name: 'Llama 3',
    source: LLAMA3,
    system: true,
    prompt:
      '<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>' +
      '<|start_header_id|>user<|end_header_id|>\n\nHi!<|eot_id|>' +
      '<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>' +
      '<|start_header_id|>user<|end_header_id|>\n\nBye?<|eot_id|>' +
      '<|start_header_id|>assistant<|end_header_id|>\n\n',
  },
  {
    name: 'Gemma',
    source: GEMMA,
    system: false,
    prompt:
      '<s><start_of_turn>user\nHi!<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n' +
      '<start_of_turn>user\nBye?<end_of_turn>\n<start_of_turn>model\n',
  },
  {
    name: 'Phi-3',
    source: PHI3,
    system: true,
    prompt:
      '<|system|>\nBe brief.<|end|>\n<|user|>\n Hi!\n<|end|>\n<|assistant|>\nHello.<|end|>\n' +
      '<|user|>\nBye?<|end|>\n<|assistant|>\n',
  },
  {
    name: 'Mistral',
    source: MISTRAL,
    system: true,
    prompt: '<s>[INST]  Hi!\n[/INST] Hello.</s>[INST] Be brief.\n\nBye?[/INST]',
  },
  {
    name: 'Zephyr',
    source: ZEPHYR,
    system: true,
    prompt:
      '<|system|>\nBe brief.</s>\n<|user|>\n Hi!\n</s>\n<|assistant|>\nHello.</s>\n' +
      '<|user|>\nBye?</s>\n<|assistant|>\n',
  },
];
