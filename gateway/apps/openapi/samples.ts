/** A request as programs in four languages, each with what its language has. `TOKEN` or the client is in the environment. */

/** What a sample sends. */
export type SampleRequest = {
  readonly method: string
  readonly url: string
  readonly access: 'bearer' | 'basic' | null
  /** Media type of the body. Undefined: no body. */
  readonly type: string | undefined
  readonly example: unknown
}

const FORM = 'application/x-www-form-urlencoded'

/** In the order of the tabs. The language is a name of `highlighted`. */
export const SAMPLES = [
  { title: 'curl', language: 'sh', write: curl },
  { title: 'TypeScript', language: 'ts', write: typescript },
  { title: 'Python', language: 'python', write: python },
  { title: 'Go', language: 'go', write: go },
] as const

function curl({ method, url, access, type, example }: SampleRequest): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const parts = [`curl -X ${method} ${quoted(url)}`]
  if (access === 'basic') parts.push(`-u "$CLIENT_ID:$CLIENT_SECRET"`)
  if (access === 'bearer') parts.push(`-H "Authorization: Bearer $TOKEN"`)
  if (type === FORM) {
    for (const [name, value] of Object.entries((example ?? {}) as object))
      parts.push(`--data-urlencode ${quoted(`${name}=${String(value)}`)}`)
  } else if (type !== undefined && example !== undefined) {
    parts.push(`-H 'Content-Type: ${type}'`, `-d ${quoted(bodyOf(type, example))}`)
  }
  return parts.join(' \\\n  ')
}

function typescript({ method, url, access, type, example }: SampleRequest): string {
  const client = '`${process.env.CLIENT_ID}:${process.env.CLIENT_SECRET}`'
  const headers = [
    ...(access === 'bearer' ? ['authorization: `Bearer ${process.env.TOKEN}`'] : []),
    ...(access === 'basic'
      ? [`authorization: \`Basic \${Buffer.from(${client}).toString('base64')}\``]
      : []),
    ...(type === undefined ? [] : [`'content-type': ${single(type)}`]),
  ]
  const body =
    type === FORM
      ? `new URLSearchParams(${JSON.stringify(example ?? {})})`
      : typeof example === 'string'
        ? JSON.stringify(example)
        : `JSON.stringify(${JSON.stringify(example, null, 2)?.replaceAll('\n', '\n  ')})`
  const lines = [
    `const answer = await fetch(${single(url)}, {`,
    `  method: ${single(method)},`,
    ...(headers.length === 0 ? [] : [`  headers: { ${headers.join(', ')} },`]),
    ...(type === undefined ? [] : [`  body: ${body},`]),
    '})',
    'console.log(answer.status, await answer.text())',
  ]
  return lines.join('\n')
}

function python({ method, url, access, type, example }: SampleRequest): string {
  const headers = [
    ...(access === 'bearer' ? [`"Authorization": f"Bearer {os.environ['TOKEN']}"`] : []),
    ...(access === 'basic'
      ? ['"Authorization": "Basic " + base64.b64encode(client).decode()']
      : []),
    ...(type === undefined ? [] : [`"Content-Type": "${type}"`]),
  ]
  return [
    ...(access === 'basic' ? ['import base64'] : []),
    ...(access === null ? [] : ['import os']),
    'import urllib.request',
    '',
    ...(access === 'basic'
      ? [`client = f"{os.environ['CLIENT_ID']}:{os.environ['CLIENT_SECRET']}".encode()`]
      : []),
    'request = urllib.request.Request(',
    `    "${url}",`,
    `    method="${method}",`,
    ...(headers.length === 0 ? [] : [`    headers={${headers.join(', ')}},`]),
    ...(type === undefined ? [] : [`    data=r"""${bodyOf(type, example)}""".encode(),`]),
    ')',
    'with urllib.request.urlopen(request) as answer:',
    '    print(answer.status, answer.read().decode())',
  ].join('\n')
}

function go({ method, url, access, type, example }: SampleRequest): string {
  const text = type === undefined ? '' : bodyOf(type, example)
  const body = text.includes('`') ? JSON.stringify(text) : `\`${text}\``
  const packages = [
    'fmt',
    'io',
    'log',
    'net/http',
    ...(access === null ? [] : ['os']),
    ...(type === undefined ? [] : ['strings']),
  ]
  const lines = [
    `request, err := http.NewRequest("${method}", "${url}", ${type === undefined ? 'nil' : `strings.NewReader(${body})`})`,
    ...FAILS,
    ...(access === 'bearer'
      ? ['request.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))']
      : []),
    ...(access === 'basic'
      ? ['request.SetBasicAuth(os.Getenv("CLIENT_ID"), os.Getenv("CLIENT_SECRET"))']
      : []),
    ...(type === undefined ? [] : [`request.Header.Set("Content-Type", "${type}")`]),
    'answer, err := http.DefaultClient.Do(request)',
    ...FAILS,
    'defer answer.Body.Close()',
    'text, err := io.ReadAll(answer.Body)',
    ...FAILS,
    'fmt.Println(answer.StatusCode, string(text))',
  ]
  const imports = packages.map((name) => `\t"${name}"`).join('\n')
  return `package main\n\nimport (\n${imports}\n)\n\nfunc main() {\n${lines.map((line) => `\t${line}`).join('\n')}\n}`
}

const FAILS = ['if err != nil {', '\tlog.Fatal(err)', '}']

function bodyOf(type: string, example: unknown): string {
  if (type === FORM)
    return new URLSearchParams((example ?? {}) as Record<string, string>).toString()
  return typeof example === 'string' ? example : JSON.stringify(example ?? {}, null, 2)
}

function single(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
