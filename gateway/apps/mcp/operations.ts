/** The operations of the public OpenAPI document, as the MCP tools return them. */

type Json = Readonly<Record<string, unknown>>

type OpenapiOperation = {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly tags?: readonly string[]
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
}

export type OpenapiDocument = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenapiOperation>>>>
  readonly components: Readonly<Record<string, Json>>
}

type OperationSummary = {
  readonly operation_id: string
  readonly method: string
  readonly path: string
  readonly summary: string
  /** The security schemes, any of which is accepted, or `none`. */
  readonly auth: string
}

type Listed = { readonly summary: OperationSummary; readonly operation: OpenapiOperation }

export class Operations {
  private readonly document: OpenapiDocument
  private readonly listed: readonly Listed[]

  constructor(document: OpenapiDocument) {
    this.document = document
    this.listed = Object.entries(document.paths)
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => ({
          operation,
          summary: {
            operation_id: operation.operationId,
            method: method.toUpperCase(),
            path,
            summary: operation.summary ?? '',
            auth: authOf(operation),
          },
        })),
      )
      .toSorted((a, b) => (a.summary.operation_id < b.summary.operation_id ? -1 : 1))
  }

  /** Operations with the tag whose text has all words of the query. Upper and lower case are equal. */
  list({
    tag,
    query,
  }: {
    tag?: string | undefined
    query?: string | undefined
  }): OperationSummary[] {
    const words = (query ?? '')
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== '')
    return this.listed
      .filter(({ operation }) => {
        const { tags = [] } = operation
        return tag === undefined || tags.some((one) => one.toLowerCase() === tag.toLowerCase())
      })
      .filter(({ summary, operation }) => {
        const { operation_id, method, path } = summary
        const { description = '', tags = [] } = operation
        const text = [operation_id, method, path, summary.summary, description, ...tags]
          .join(' ')
          .toLowerCase()
        return words.every((word) => text.includes(word))
      })
      .map(({ summary }) => summary)
  }

  /** The operation with the components that it refers to, or null. */
  read(operationId: string): Json | null {
    const found = this.listed.find(({ summary }) => summary.operation_id === operationId)
    if (found === undefined) return null
    const { operation, summary } = found
    return { ...summary, operation, components: this.componentsOf(operation) }
  }

  /** The tags of all operations, sorted. */
  tags(): readonly string[] {
    return [...new Set(this.listed.flatMap(({ operation }) => operation.tags ?? []))].toSorted()
  }

  private componentsOf(operation: OpenapiOperation): Json {
    const components: Record<string, Record<string, unknown>> = {}
    const pending: unknown[] = [operation]
    const { security = [] } = operation
    for (const name of security.flatMap((one) => Object.keys(one))) {
      pending.push({ $ref: `#/components/securitySchemes/${name}` })
    }
    while (pending.length > 0) {
      const value = pending.pop()
      if (typeof value !== 'object' || value === null) continue
      for (const [member, inner] of Object.entries(value)) {
        const [, kind, name] =
          (member === '$ref' &&
            typeof inner === 'string' &&
            /^#\/components\/([^/]+)\/([^/]+)$/.exec(inner)) ||
          []
        if (kind === undefined || name === undefined) {
          pending.push(inner)
          continue
        }
        components[kind] ??= {}
        if (Object.hasOwn(components[kind], name)) continue
        const component = this.document.components[kind]?.[name]
        components[kind][name] = component
        pending.push(component)
      }
    }
    return components
  }
}

function authOf({ security = [] }: OpenapiOperation): string {
  const names = new Set(security.flatMap((one) => Object.keys(one)))
  if (names.size === 0) return 'none'
  const isOptional = security.some((one) => Object.keys(one).length === 0)
  return [...names, ...(isOptional ? ['none'] : [])].join(' or ')
}
