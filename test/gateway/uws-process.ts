/** A gateway on uWebSockets in a separate process, which prints its port and runs until it is killed. */
import { openStage } from './stage.js'

const { port } = await openStage({ transport: 'uws' })
process.send?.({ port })
