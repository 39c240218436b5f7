/**
 * What an integrator relies on does not disappear: operations of the public OpenAPI document, their statuses, the members of
 * their answers, and optional members of their requests (docs/reference/http.md, Versions and deprecation).
 * `RECORD_PUBLISHED=1` adds what is new to the list.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import test from 'ava'
import { openapiDocument } from '../../gateway/apps/openapi/openapi.js'
import { routes } from '../../gateway/route-table.js'

type Tree = { readonly [key: string]: Tree | undefined }

const LIST = 'test/contract/published.txt'
const DEPTH_MAX = 4
const document = openapiDocument({
  issuer: 'https://id.test',
  exposure: 'public',
  routes,
}) as unknown as Tree

function resolved(schema: Tree | undefined): Tree | undefined {
  const reference = schema?.['$ref'] as string | undefined
  if (reference === undefined) return schema
  return reference
    .slice(2)
    .split('/')
    .reduce<Tree | undefined>((at, name) => at?.[name], document)
}

/** The names of all members of a schema, as a.b. */
function membersOf(schema: Tree | undefined, prefix: string, depth = 0): readonly string[] {
  const found = resolved(schema)
  if (found === undefined || depth > DEPTH_MAX) return []
  const alternatives = ['anyOf', 'oneOf', 'allOf'].flatMap((name) =>
    Object.values(found[name] ?? {}),
  )
  return [
    ...Object.entries(found['properties'] ?? {}).flatMap(([name, inner]) => [
      `${prefix}${name}`,
      ...membersOf(inner, `${prefix}${name}.`, depth + 1),
    ]),
    ...membersOf(found['items'], `${prefix}[].`, depth + 1),
    ...alternatives.flatMap((inner) => membersOf(inner, prefix, depth + 1)),
  ]
}

function linesOf(operation: Tree, name: string): readonly string[] {
  const schemas = (content: Tree | undefined) =>
    Object.values(content ?? {}).map((type) => type?.['schema'])
  const answers = Object.entries(operation['responses'] ?? {}).flatMap(([status, answer]) => [
    `${name} ${status}`,
    // Refusals share the members of problem documents.
    ...(status.startsWith('2') ? schemas(resolved(answer)?.['content']) : [])
      .flatMap((schema) => membersOf(schema, ''))
      .map((member) => `${name} ${status} ${member}`),
  ])
  const body = schemas(resolved(operation['requestBody'])?.['content'])
    .flatMap((schema) => membersOf(schema, ''))
    .map((member) => `${name} request ${member}`)
  return [name, ...body, ...answers]
}

const METHODS = new Set(['get', 'post', 'put', 'patch', 'delete'])
const present = [
  ...new Set(
    Object.entries(document['paths'] ?? {}).flatMap(([path, item]) =>
      Object.entries(item ?? {})
        .filter(([method]) => METHODS.has(method))
        .flatMap(([method, operation]) => linesOf(operation!, `${method.toUpperCase()} ${path}`)),
    ),
  ),
].toSorted()

test('no published operation, status or member has disappeared', (t) => {
  if (process.env['RECORD_PUBLISHED'] === '1') {
    const before = readFileSync(LIST, { encoding: 'utf8', flag: 'a+' }).split('\n')
    const all = [...new Set([...before, ...present])].filter((line) => line !== '').toSorted()
    writeFileSync(LIST, `${all.join('\n')}\n`)
  }
  const published = readFileSync(LIST, 'utf8').trimEnd().split('\n')
  t.true(published.length > 1_000, String(published.length))
  const now = new Set(present)
  t.deepEqual(
    published.filter((line) => !now.has(line)),
    [],
  )
})
