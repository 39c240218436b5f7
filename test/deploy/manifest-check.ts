/** Checks Kubernetes objects as a strict API server does: their values, and that no member is unknown. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { toolRequire } from '../support/tools.js'

export type KubernetesObject = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
}

const MODELS = dirname(toolRequire.resolve('kubernetes-models/package.json'))

/**
 * The faults of an object. Its types come from the package kubernetes-models, which is generated from the OpenAPI
 * document of Kubernetes. Undefined: the package does not know the kind, so it belongs to an extension.
 */
export function faultsOf(object: KubernetesObject): string[] | undefined {
  const module = `kubernetes-models/${object.apiVersion}/${object.kind}`
  let model: Readonly<Record<string, unknown>>
  try {
    model = toolRequire(module) as typeof model
  } catch {
    return undefined
  }
  const Model = model[object.kind] as new (data: object) => { validate(): void }
  const faults: string[] = []
  try {
    new Model(object).validate()
  } catch (error) {
    faults.push((error as Error).message)
  }
  const file = join(MODELS, object.apiVersion, `${object.kind}.d.ts`)
  return [...faults, ...unknownMembers(object, file, object.kind)]
}

/** Walks the declarations: validation alone accepts members that do not exist. */
function unknownMembers(value: unknown, file: string, path: string): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((one, index) => unknownMembers(one, file, `${path}[${index}]`))
  }
  if (typeof value !== 'object' || value === null) return []
  const text = readFileSync(file, 'utf8')
  const [, body] = /export interface I\w+[^{]*\{\n([\s\S]*?)\n\}/.exec(text) ?? []
  // A union such as IntOrString, or a table with free keys.
  if (body === undefined || /^ {4}\[key: string\]/m.test(body)) return []
  const members = new Map(
    [...body.matchAll(/^ {4}"([^"]+)"\??: (.+)$/gm)].map(([, name, type]) => [name!, type!]),
  )
  return Object.entries(value).flatMap(([name, inner]) => {
    const type = members.get(name)
    if (type === undefined && name !== 'apiVersion' && name !== 'kind') {
      return [`${path}.${name} does not exist`]
    }
    const imported = importOf(text, /\bIIo\w+/.exec(type ?? '')?.[0], file)
    return imported === undefined ? [] : unknownMembers(inner, imported, `${path}.${name}`)
  })
}

function importOf(text: string, type: string | undefined, file: string): string | undefined {
  if (type === undefined) return undefined
  const [, from] =
    new RegExp(`import \\{[^}]*\\b${type}\\b[^}]*\\} from "([^"]+)"`).exec(text) ?? []
  if (from === undefined) return undefined
  if (from.startsWith('.')) return join(dirname(file), `${from}.d.ts`)
  const [scope, name, ...rest] = from.split('/')
  const root = dirname(toolRequire.resolve(`${scope}/${name}/package.json`, { paths: [MODELS] }))
  return `${join(root, ...rest)}.d.ts`
}
