/**
 * What the MCP tools read. Documents come from the routes that serve them over HTTP, and catalogues from the same
 * tables as OpenAPI, so that a tool and the service cannot disagree.
 */
import { CREDENTIAL_CONFIGURATIONS } from '../../../actors/domain/credentials/catalogue.js'
import { EVENT_CATALOGUE } from '../../../actors/domain/event-catalogue.js'
import { EVENT_TYPES, type EventType } from '../../../actors/domain/events.js'
import { SCOPES } from '../../../actors/domain/scopes.js'
import { OAUTH_ERRORS } from '../../../actors/domain/oauth-reasons.js'
import type { AskOptions } from '../../../runtime/kernel/actor.js'
import type { AnyRef, Refs } from '../../compile-route.js'
import { TEXTS } from '../../pages/texts/texts.js'
import {
  FINER_CODES,
  PROBLEM_TYPES,
  type Problem,
  problemCode,
  type ProblemName,
} from '../../response/problems.js'
import { NO_CONTEXT } from '../../response/replies.js'
import type { AnyRouteRequest, ResponseDoc, Route } from '../../route.js'
import { type OpenapiDocument, Operations } from './operations.js'

type DocumentsOptions = {
  /** The described routes of the deployment, capabilities included. */
  readonly routes: readonly Route[]
  readonly refs: Refs
  /** Event types of the deployment. Default: all. */
  readonly events?: readonly EventType[] | undefined
  /** The public OpenAPI document. */
  readonly document: () => object
}

export type Read =
  | { readonly tag: 'read'; readonly document: Readonly<Record<string, unknown>> }
  | { readonly tag: 'refused'; readonly problem: Problem }

export class Documents {
  private readonly options: DocumentsOptions
  private described: Operations | null = null

  constructor(options: DocumentsOptions) {
    this.options = options
  }

  /**
   * The JSON document that GET on the path returns for the same host.
   * @throws {ActorUnavailable}
   */
  async read(path: string, request: AnyRouteRequest, asking: AskOptions): Promise<Read> {
    const route = this.options.routes.find((one) => one.path === path && one.method === 'GET')
    if (route === undefined) throw new Error(`there is no route GET ${path}`)
    const rendered = await rendering(route, this.options.refs, request, asking)
    if (rendered.form === 'problem') return { tag: 'refused', problem: rendered.problem }
    if (rendered.form !== 'body' || rendered.body === null) throw new Error(`GET ${path}: no body`)
    const { body } = rendered
    const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8')
    return { tag: 'read', document: JSON.parse(text) as Readonly<Record<string, unknown>> }
  }

  /** The operations of the public OpenAPI document. */
  get operations(): Operations {
    return (this.described ??= new Operations(this.options.document() as OpenapiDocument))
  }

  /** All scopes with their words on the consent page, and the public operations that accept each. */
  scopes(): readonly object[] {
    const { routes } = this.options
    const issues = routes.some(({ operationId }) => operationId === 'requestCredential')
    return [...SCOPES, ...(issues ? CREDENTIAL_CONFIGURATIONS : [])].map((scope) => ({
      scope,
      meaning: TEXTS.en[`scope.${scope}`],
      operations: routes
        .filter(({ exposure, security }) => exposure === 'public' && acceptsScope(security, scope))
        .map(({ operationId }) => operationId)
        .toSorted(),
    }))
  }

  /** The event types of the deployment. Upper and lower case of the category are equal. */
  eventTypes(category: string | undefined): readonly object[] {
    const offered = new Set<EventType>(this.options.events ?? EVENT_TYPES)
    return Object.entries(EVENT_CATALOGUE)
      .filter(([name]) => category === undefined || name.toLowerCase() === category.toLowerCase())
      .flatMap(([name, types]) =>
        (Object.keys(types) as EventType[])
          .filter((type) => offered.has(type))
          .map((type) => ({ type, category: name })),
      )
  }

  /** The problem types and the codes of OAuth answers, as GET /errors/{name} shows them. */
  errorCodes(): readonly object[] {
    const listed = (Object.keys(PROBLEM_TYPES) as ProblemName[]).flatMap((name) => {
      const { status, title, meaning } = PROBLEM_TYPES[name]
      const codes = [problemCode(name), ...(FINER_CODES[name] ?? [])]
      return codes.map((code) => {
        const own = OAUTH_ERRORS[code as keyof typeof OAUTH_ERRORS]
        return own === undefined
          ? { status, code, title, meaning }
          : { status, code, title: code, meaning: own.meaning }
      })
    })
    const statuses = oauthStatuses(this.options.routes)
    const oauth = Object.entries(OAUTH_ERRORS).flatMap(([code, { meaning }]) => {
      const known = listed.filter((one) => one.code === code).map(({ status }) => Number(status))
      // Without one it is a parameter of a redirect to the client, and 400 where no redirect is possible.
      const given = statuses.get(code) ?? (known.length === 0 ? [400] : [])
      return [...given]
        .filter((status) => !known.includes(status))
        .map((status) => ({ status, code, title: code, meaning }))
    })
    return [...listed, ...oauth]
  }
}

const docsOf = ({ target }: Route): readonly ResponseDoc[] =>
  target.via === 'gateway'
    ? target.responses
    : Object.values(target.replies).flatMap((rule) => rule.docs)

async function rendering(
  { target }: Route,
  refs: Refs,
  request: AnyRouteRequest,
  asking: AskOptions,
) {
  if (target.via === 'gateway') return target.answer(request, asking)
  const ref = refs.get(target.address.name) as unknown as AnyRef
  const outcome = await ref.ask(target.kind, target.message(request), asking)
  return target.replies[outcome.tag]!.render(outcome as never, NO_CONTEXT)
}

/** The statuses with which routes answer each OAuth code. */
function oauthStatuses(routes: readonly Route[]): ReadonlyMap<string, ReadonlySet<number>> {
  const found = new Map<string, Set<number>>()
  for (const { oauthError, status } of routes.flatMap(docsOf)) {
    if (oauthError === undefined) continue
    found.set(oauthError, (found.get(oauthError) ?? new Set()).add(status))
  }
  return found
}

function acceptsScope(security: Route['security'], scope: string): boolean {
  if (security.scheme === 'person') return security.scopes.includes(scope)
  if (security.scheme === 'metrics') return scope === 'metrics:read'
  if (security.scheme !== 'bearer') return false
  const { scopes = [], directScopes = [] } = security
  return scopes.includes(scope) || directScopes.includes(scope)
}
