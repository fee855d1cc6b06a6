"""Chat templates in the shapes of newer families' for `chat_templates.py`."""

# the shape of Gemma 4's: macros that call each other and themselves, a block kept in a variable, looking back and ahead among messages
GEMMA4 = """{%- macro declared(properties, listed) -%}
    {%- set seen = namespace(any=false) -%}
    {%- for name, schema in properties | dictsort -%}
        {%- if schema is mapping -%}
            {%- if seen.any %},{% endif -%}
            {%- set seen.any = true -%}
            {{ name }}:{
            {%- if schema['description'] -%}description:{{ argument(schema['description']) }},{%- endif -%}
            {%- if schema['enum'] -%}enum:{{ argument(schema['enum']) }},{%- endif -%}
            {%- if schema['properties'] is mapping -%}
                properties:{ {{- declared(schema['properties'], schema['required'] | default([])) -}} },
            {%- endif -%}
            {%- if schema['type'] is string -%}
                type:{{ argument(schema['type'] | upper) }}
            {%- elif schema['type'] is sequence -%}
                type:{{ argument(schema['type'] | map('upper') | list) }}
            {%- endif -%}
            {{ '!' if name in listed }}}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro -%}
{%- macro argument(value, quotes_keys=True) -%}
    {%- if value is string -%}
        {{- '<|"|>' + value + '<|"|>' -}}
    {%- elif value is boolean -%}
        {{- 'true' if value else 'false' -}}
    {%- elif value is mapping -%}
        {{- '{' -}}
        {%- for key, item in value | dictsort -%}
            {{- argument(key) if quotes_keys else key -}}:{{- argument(item, quotes_keys=quotes_keys) -}}
            {%- if not loop.last %},{% endif -%}
        {%- endfor -%}
        {{- '}' -}}
    {%- elif value is sequence -%}
        {{- '[' -}}
        {%- for item in value -%}
            {{- argument(item, quotes_keys) -}}{%- if not loop.last %},{% endif -%}
        {%- endfor -%}
        {{- ']' -}}
    {%- else -%}
        {{- value -}}
    {%- endif -%}
{%- endmacro -%}
{%- macro without_thoughts(text) -%}
    {%- set kept = namespace(text='') -%}
    {%- for part in text.split('</think>') -%}
        {%- set kept.text = kept.text + (part.split('<think>')[0] if '<think>' in part else part) -%}
    {%- endfor -%}
    {{- kept.text | trim -}}
{%- endmacro -%}
{%- set rest = messages -%}
{{- bos_token -}}
{%- if (enable_thinking is defined and enable_thinking) or tools or messages[0]['role'] in ['system', 'developer'] -%}
    {{- '<|turn>system\n' -}}
    {%- if messages[0]['role'] in ['system', 'developer'] -%}
        {{- messages[0]['content'] | trim -}}
        {%- set rest = messages[1:] -%}
    {%- endif -%}
    {%- for tool in tools %}
        {{- '<|tool>declaration:' -}}
        {{- tool['function']['name'] -}}{ {{- declared(tool['function']['parameters']['properties'], tool['function']['parameters']['required']) | trim -}} }
        {{- '<tool|>' -}}
    {%- endfor %}
    {{- '<turn|>\n' -}}
{%- endif %}
{%- set last = namespace(user=-1, kind=None) -%}
{%- for i in range(rest | length) -%}
    {%- if rest[i]['role'] == 'user' -%}{%- set last.user = i -%}{%- endif -%}
{%- endfor -%}
{%- for message in rest -%}
    {%- if message['role'] != 'tool' -%}
        {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
        {%- set before = namespace(role=None, found=false) -%}
        {%- for j in range(loop.index0 - 1, -1, -1) -%}
            {%- if not before.found and rest[j]['role'] != 'tool' -%}
                {%- set before.role = rest[j]['role'] -%}
                {%- set before.found = true -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if not (role == 'model' and before.role == 'assistant') -%}
            {{- '<|turn>' + role + '\n' }}
        {%- endif -%}
        {%- set thought = message.get('reasoning') or message.get('reasoning_content') -%}
        {%- if thought and loop.index0 > last.user -%}
            {{- '<|channel>thought\n' + thought + '\n<channel|>' -}}
        {%- endif -%}
        {%- if message['tool_calls'] -%}
            {%- for call in message['tool_calls'] -%}
                {{- '<|tool_call>call:' + call['function']['name'] + argument(call['function']['arguments'], quotes_keys=False) + '<tool_call|>' -}}
            {%- endfor -%}
            {%- set last.kind = 'call' -%}
            {%- set scan = namespace(ended=false) -%}
            {%- for k in range(loop.index0 + 1, rest | length) -%}
                {%- if rest[k]['role'] != 'tool' -%}
                    {%- set scan.ended = true -%}
                {%- elif not scan.ended -%}
                    {%- set named = namespace(name=rest[k].get('name') | default('unknown', true)) -%}
                    {%- for call in message['tool_calls'] -%}
                        {%- if call.get('id') == rest[k].get('tool_call_id') -%}
                            {%- set named.name = call['function']['name'] -%}
                        {%- endif -%}
                    {%- endfor -%}
                    {{- '<|tool_response>response:' + named.name + '{value:' + argument(rest[k].get('content'), quotes_keys=False) + '}<tool_response|>' -}}
                    {%- set last.kind = 'response' -%}
                {%- endif -%}
            {%- endfor -%}
        {%- else -%}
            {%- set last.kind = none -%}
        {%- endif -%}
        {%- set body -%}
            {%- if message['content'] is string -%}
                {{- without_thoughts(message['content']) if role == 'model' else message['content'] | trim -}}
            {%- elif message['content'] is sequence -%}
                {%- for item in message['content'] -%}
                    {{- item['text'] | trim if item['type'] == 'text' else '<|' + item['type'] + '|>' -}}
                {%- endfor -%}
            {%- endif -%}
        {%- endset -%}
        {{- body -}}
        {%- if not (last.kind == 'call' or (last.kind == 'response' and not body | trim)) -%}
            {{- '<turn|>\n' -}}
        {%- endif -%}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt and last.kind not in ['call', 'response'] -%}
    {{- '<|turn>model\n' -}}
{%- endif -%}
"""

# the shape of the one that vLLM has for Llama 4
LLAMA4 = """{{- bos_token }}
{%- if tools is not defined %}
    {%- set tools = none %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set given = true %}
    {%- set opening = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- elif tools is not none %}
    {%- set opening = "Use exact format: [func_name1(param1=value1), func_name2(...)]" %}
{%- endif %}
{%- if opening %}
    {{- '<|header_start|>system<|header_end|>\n\n' ~ opening }}
    {%- if given and tools %}
        {{- "\nFunctions:\n" ~ missing ~ (tools | tojson(indent=4)) -}}
    {%- endif %}
    {{- '<|eot|>' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role in ('ipython', 'tool') %}
        {{- '<|header_start|>ipython<|header_end|>\n\n' ~ (message.content | tojson) }}
    {%- else %}
        {{- '<|header_start|>' + message['role'] + '<|header_end|>\n\n' }}
        {%- if message['content'] is string %}
            {{- message['content'] }}
        {%- else %}
            {%- for content in message['content'] %}
                {{- content['text'] | trim if content['type'] == 'text' else '<|image|>' }}
            {%- endfor %}
        {%- endif %}
        {%- if 'tool_calls' in message and message.tool_calls | length != 0 %}
            {{- '[' }}
            {%- for tool_call in message.tool_calls %}
                {%- if tool_call.function is defined %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- tool_call.name + '(' -}}
                {%- for param in tool_call.arguments %}
                    {{- param + '="' -}}{{- "%s" | format(tool_call.arguments[param]) -}}{{- '"' -}}
                    {% if not loop.last %}, {% endif %}
                {%- endfor %}
                {{- ')' -}}
                {% if not loop.last %}, {% endif %}
            {%- endfor %}
            {{- ']' }}
        {%- endif %}
    {%- endif %}
    {{- '<|eot|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|header_start|>assistant<|header_end|>\n\n' }}
{%- endif %}
"""

NEWER_TEMPLATES = {"gemma4": GEMMA4, "llama4": LLAMA4}
