/** A facilitator over HTTP: the public library in front of a test chain, with injectable faults. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { x402Facilitator } from '@x402/core/facilitator'
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/facilitator'
import { NETWORK, type TestChain } from './chain.js'

export type Asked = {
  readonly operation: 'verify' | 'settle'
  readonly paymentPayload: PaymentPayload
  readonly paymentRequirements: PaymentRequirements
}
export type Said = Readonly<Record<string, unknown>>

/**
 * Intercepts a response. Returns the response to send instead, undefined for the library's
 * response, or null when it has handled the response itself.
 */
export type Mischief = (
  asked: Asked,
  honest: () => Promise<Said>,
  response: ServerResponse,
) => Promise<Said | null | undefined> | Said | null | undefined

export interface TestFacilitator {
  readonly url: string
  readonly asked: Asked[]
  /** Fault of the next requests. Undefined for none. */
  mischief: Mischief | undefined
  /** Faults of requests about payments to an address. */
  readonly mischiefs: Map<string, Mischief>
  count(operation: Asked['operation']): number
  /** Number of requests about payments to an address. */
  about(payTo: string, operation?: Asked['operation']): number
  close(): Promise<void>
}

/** @param chain null when every response is injected. */
export async function startFacilitator(chain: TestChain | null): Promise<TestFacilitator> {
  const library = chain === null ? undefined : libraryOn(chain)
  const asked: Asked[] = []

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const operation = request.url === '/settle' ? 'settle' : 'verify'
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Omit<Asked, 'operation'>
    const question: Asked = { ...body, operation }
    asked.push(question)
    const honest = async (): Promise<Said> => {
      const { paymentPayload, paymentRequirements } = question
      if (library === undefined || chain === null) throw new Error('there is no chain to ask')
      if (operation === 'verify') {
        return { ...(await library.verify(paymentPayload, paymentRequirements)) }
      }
      return chain.inTurn(async () => ({
        ...(await library.settle(paymentPayload, paymentRequirements)),
      }))
    }
    const mischief =
      facilitator.mischiefs.get(question.paymentRequirements.payTo) ?? facilitator.mischief
    const said = await mischief?.(question, honest, response)
    if (said === null) return
    const text = JSON.stringify(said ?? (await honest()))
    response.writeHead(200, { 'content-type': 'application/json' }).end(text)
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500)
      response.end(JSON.stringify({ error: String(error) }))
    })
  })
  const end = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const facilitator: TestFacilitator = {
    url: `http://127.0.0.1:${port}`,
    asked,
    mischief: undefined,
    mischiefs: new Map(),
    count: (operation) => asked.filter((one) => one.operation === operation).length,
    about: (payTo, operation) =>
      asked.filter(
        (one) =>
          one.paymentRequirements.payTo === payTo &&
          (operation === undefined || one.operation === operation),
      ).length,
    close: end,
  }
  return facilitator
}

function libraryOn({ wallet }: TestChain): x402Facilitator {
  const signer = toFacilitatorEvmSigner({
    address: wallet.account.address,
    readContract: (args: object) => wallet.readContract(args as never),
    verifyTypedData: (args: object) => wallet.verifyTypedData(args as never),
    writeContract: (args: object) => wallet.writeContract(args as never),
    sendTransaction: (args: object) => wallet.sendTransaction(args as never),
    // The chain has mined a transaction before it returns its hash.
    waitForTransactionReceipt: (args: object) => wallet.getTransactionReceipt(args as never),
    getCode: (args: object) => wallet.getCode(args as never),
  } as never)
  return new x402Facilitator()
    .register(NETWORK, new ExactEvmScheme(signer))
    .registerV1('base-sepolia' as never, new ExactEvmSchemeV1(signer))
}
