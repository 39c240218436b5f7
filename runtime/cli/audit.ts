/** `svc audit`: verifies an exported audit chain, without a service or a database, and explains a request. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import { type AuditRecord, ChainCheck } from '../../storage/operations/audit-chain.js'
import { explain, explanationText } from './audit/explain.js'
import { errorText } from '../process/error-text.js'
import { resultText, withTarget } from './target.js'
import { type DatabaseCommandHost, databaseHost } from './trace.js'

/** Adds `audit` with its sub-commands to the program. */
export function auditCommand(program: Command, host: DatabaseCommandHost = databaseHost()): void {
  const audit = program.command('audit').description('verify audit chains, explain requests')
  audit
    .command('verify')
    .argument('<file>', 'JSON lines, as returned by GET /api/v1/audit-events/export')
    .description('verify that no event was changed, removed, inserted or moved')
    .option('--json', 'as JSON')
    .action(async (file: string, { json = false }: { json?: boolean }) => {
      try {
        const { text, ...found } = await verifyExport(createReadStream(file, 'utf8'))
        host.out(resultText(json, found, text))
      } catch (error) {
        host.err(`svc audit: ${error instanceof Error ? error.message : String(error)}`)
        host.exitWith(1)
      }
    })
  audit
    .command('explain')
    .argument('<request-id>', 'the x-request-id of a response')
    .description('who did it, through whom, for what, by which grant or rule, and the outcome')
    .option('--json', 'as JSON')
    .action(async (requestId: string, { json = false }: { json?: boolean }) => {
      try {
        const events = await explain(requestId, host.open)
        host.out(
          json
            ? JSON.stringify(withTarget({ request_id: requestId, events }), null, 2)
            : explanationText(events),
        )
      } catch (error) {
        host.err(`svc audit explain: ${errorText(error)}`)
        host.exitWith(1)
      }
    })
}

/** An export whose chain holds: its parts, and as a text. */
type VerifiedExport = {
  readonly text: string
  readonly tenant_id: string
  readonly events: number
  readonly first_sequence: number
  readonly previous_hash: string
  readonly last_sequence: number
  readonly last_hash: string
}

/**
 * Verifies an export line by line, whatever its size.
 * @returns what holds. @throws {Error} with a description of what does not hold.
 */
async function verifyExport(input: NodeJS.ReadableStream): Promise<VerifiedExport> {
  const chain = new ChainCheck()
  let number = 0
  let first: AuditRecord | undefined
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    number += 1
    if (line.trim() === '') continue
    const event = readEvent(line, number)
    first ??= event
    const broken = chain.add(event)
    if (broken !== undefined) {
      throw new Error(`line ${number}: event ${broken.sequence} ${broken.reason}`)
    }
  }
  const { head } = chain
  if (first === undefined || head === undefined) throw new Error('the file has no events')
  const text = [
    `${chain.events} events of tenant ${first.tenant_id} hold, from ${first.sequence} to ${head.sequence}.`,
    first.sequence === 1
      ? 'They start at the beginning of the chain.'
      : `They follow the event with the hash ${first.previous_hash}.`,
    `The last hash is ${head.hash}.`,
  ].join('\n')
  return {
    text,
    tenant_id: first.tenant_id,
    events: chain.events,
    first_sequence: first.sequence,
    previous_hash: first.previous_hash,
    last_sequence: head.sequence,
    last_hash: head.hash,
  }
}

function readEvent(line: string, number: number): AuditRecord {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new Error(`line ${number} is not JSON`)
  }
  const { sequence, hash, previous_hash, tenant_id } = (value ?? {}) as Partial<AuditRecord>
  const whole = typeof sequence === 'number' && Number.isSafeInteger(sequence)
  if (![hash, previous_hash, tenant_id].every((text) => typeof text === 'string') || !whole) {
    throw new Error(`line ${number} is not an audit event`)
  }
  return value as AuditRecord
}
