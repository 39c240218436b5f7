/**
 * A chain in a process of its own: it consists of native code that must not run in two threads of
 * one process. It gets its options as the first message, answers once it listens, and ends with its
 * parent.
 */
import { createRequire } from 'node:module'

/** The first message to the process. */
export type ChainOptions = { readonly port: number; readonly options: object }

type Ganache = {
  server(options: object): { listen(port: number, host: string): Promise<void> }
}

const ganache = createRequire(import.meta.url)('ganache') as Ganache

process.once('message', async ({ port, options }: ChainOptions) => {
  await ganache.server(options).listen(port, '127.0.0.1')
  process.send?.('listening')
})
process.once('disconnect', () => process.exit(0))
