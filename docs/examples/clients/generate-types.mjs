/**
 * Types for Python or Go from the OpenAPI document of a service, made by quicktype.
 *
 *   npm install quicktype-core@26.0.0
 *   node generate-types.mjs python openapi.json > svc_types.py
 *   node generate-types.mjs go openapi.json > svc/types.go
 */
import { readFileSync } from 'node:fs'
import { FetchingJSONSchemaStore, InputData, JSONSchemaInput, quicktype } from 'quicktype-core'

const OPTIONS = {
  python: { 'python-version': '3.7' },
  go: { package: 'svc' },
}

const [lang = '', file = ''] = process.argv.slice(2)
if (!(lang in OPTIONS)) throw new Error(`the language is one of ${Object.keys(OPTIONS).join(', ')}`)
const { schemas } = JSON.parse(readFileSync(file, 'utf8')).components

/** quicktype reads JSON Schema draft 7. Times and ids stay texts, as they are in JSON. */
function draft7(value) {
  if (Array.isArray(value)) return value.map(draft7)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).flatMap(([key, inner]) => {
    // The keys of these are names of members, not keywords.
    if (key === 'properties') return [[key, mapped(inner)]]
    if (['example', 'examples', 'format'].includes(key)) return []
    if (key === 'const') return [['enum', [inner]]]
    if (key === '$ref') return [[key, inner.replace('#/components/schemas/', '#/definitions/')]]
    return [[key, draft7(inner)]]
  })
  return Object.fromEntries(entries)
}

function mapped(schemas) {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, draft7(schema)]))
}

const root = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: Object.fromEntries(
    Object.keys(schemas).map((name) => [name, { $ref: `#/definitions/${name}` }]),
  ),
  definitions: mapped(schemas),
}
const input = new JSONSchemaInput(new FetchingJSONSchemaStore())
await input.addSource({ name: 'Svc', schema: JSON.stringify(root) })
const inputData = new InputData()
inputData.addInput(input)
const { lines } = await quicktype({
  inputData,
  lang,
  rendererOptions: OPTIONS[lang],
  inferMaps: false,
  inferDateTimes: false,
  inferUuids: false,
  combineClasses: false,
})
process.stdout.write(`${lines.join('\n')}\n`)
