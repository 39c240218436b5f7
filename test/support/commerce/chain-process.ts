/**
 * A chain in a process of its own: what it is made of is native code that must not run in two threads
 * of one. Transition its options as the first message, it answers once it listens and ends with its parent.
 */
import { createRequire } from 'node:module'

/** What the process is told. */
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
