/** A flood of registration starts from many addresses at a constant rate. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import type { Json } from '../api.js'

export const START = '/api/v1/agents/auth/register/pow'

export type FloodJob = {
  readonly port: number
  /** Requests sent per second, whether or not they are answered. */
  readonly perSecond: number
  /** Maximum number of requests in progress. Beyond it the oldest is replaced. */
  readonly connections: number
  /** Complete requests in wire form, sent in rotation. */
  readonly requests: readonly string[]
}

export type FloodTally = {
  readonly offered: number
  readonly answered: number
  /** Offered and then abandoned. */
  readonly givenUp: number
  /** Connections that the server closed. */
  readonly brokenOff: number
  readonly statuses: Readonly<Record<string, number>>
  readonly seconds: number
}

export interface Flood {
  tally(): Promise<FloodTally>
  end(): Promise<FloodTally>
}

export function startFlood(job: FloodJob): Flood {
  const worker = new Worker(new URL('./flood-thread.js', import.meta.url), { workerData: job })
  const ask = async (what: 'tally' | 'end') => {
    worker.postMessage(what)
    const [tally] = (await once(worker, 'message')) as [FloodTally]
    return tally
  }
  return { tally: () => ask('tally'), end: () => ask('end') }
}

/** A valid start that will never be completed. @param address of its sender. */
export function hostileStart(
  target: { readonly issuer: string; readonly tenantId: string },
  address: string,
): string {
  const registration = createAgentKey().registration(target)
  return wire(target, address, { name: 'Flood', tenant_id: target.tenantId, ...registration })
}

/** The same with an invalid proof, which costs its sender nothing. */
export function forgedStart(
  target: { readonly issuer: string; readonly tenantId: string },
  address: string,
): string {
  const registration = createAgentKey().registration(target)
  const proof = Buffer.alloc(64, 7).toString('base64url')
  const body = { ...registration, key_ownership_proof: proof }
  return wire(target, address, { name: 'Forged', tenant_id: target.tenantId, ...body })
}

function wire({ issuer }: { readonly issuer: string }, address: string, json: Json): string {
  const body = JSON.stringify(json)
  return [
    `POST ${START} HTTP/1.1`,
    `Host: ${new URL(issuer).host}`,
    'Content-Type: application/json',
    `X-Forwarded-For: ${address}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}
