/** Problem types in Italian. */
import type { ProblemTexts } from '../problem-advice.js'

export const it: ProblemTexts = {
  words: {
    status: 'Stato {status}, codice di errore',
    cause: 'Causa',
    remedy: 'Cosa fare',
    retry: 'Nuovo tentativo',
    all: 'Tutti i tipi di errore',
    intro:
      'Gli errori di questo servizio sono documenti di problema (RFC 9457). Il membro `type` è l’indirizzo di una di queste pagine.',
  },
  retry: {
    changed: 'Non ripetere la stessa richiesta: fallirebbe ancora. Invia una richiesta corretta.',
    token: 'Ripeti la richiesta una volta con un altro token.',
    never: 'Non ripetere la richiesta.',
    same: 'Ripeti la stessa richiesta. Ripeti una scrittura solo con il suo `idempotency-key`.',
    wait: 'Attendi i secondi indicati da `Retry-After`, poi ripeti la stessa richiesta.',
    backoff:
      'Attendi quanto indica `Retry-After`; se manca, un secondo, che raddoppia a ogni tentativo. Ripeti una scrittura solo con il suo `idempotency-key`.',
  },
  types: {
    'bad-request': [
      'Richiesta non valida',
      'La richiesta è malformata, manca un membro obbligatorio o un valore non è valido. Il membro `errors` indica ogni punto con un puntatore JSON, se il server lo conosce.',
      'Leggi `errors` e `detail` e confronta la richiesta con la sua operazione in `/openapi.json`.',
    ],
    unauthorized: [
      'Non autenticato',
      'Le credenziali mancano o non sono valide. `WWW-Authenticate` indica lo schema e i metadati del server di autorizzazione.',
      'Invia un token di accesso di questo servizio nell’intestazione `Authorization`. `/auth.md` spiega come ottenerlo.',
    ],
    'token-expired': [
      'Token scaduto',
      'Il token di accesso è scaduto.',
      'Usa il token di aggiornamento o accedi di nuovo.',
    ],
    'token-revoked': [
      'Token revocato',
      'Il token di accesso è stato revocato prima della scadenza.',
      'Accedi di nuovo o chiedi all’utente una nuova delega. Elimina il vecchio token.',
    ],
    'delegation-expired': [
      'Delega scaduta',
      'La delega dell’utente all’agente è scaduta. Un aggiornamento non restituisce un nuovo token.',
      'Avvia una nuova delega e chiedi all’utente.',
    ],
    'payment-required': [
      'Pagamento richiesto',
      'La risorsa è a pagamento. La risposta contiene il prezzo e i metodi di pagamento.',
      'Paga con uno dei metodi della risposta, poi ripeti la richiesta con la prova di pagamento.',
    ],
    forbidden: [
      'Vietato',
      'Il chiamante è autenticato ma non autorizzato: tenant, ruolo o tipo di token non lo consentono.',
      'Usa un token del tenant giusto o chiedi il ruolo a un amministratore. `detail` indica il motivo.',
    ],
    'insufficient-scope': [
      'Ambito insufficiente',
      'Al token manca un ambito di questa operazione. `WWW-Authenticate` lo indica.',
      'Ottieni un token con l’ambito indicato da `WWW-Authenticate`.',
    ],
    'policy-denied': [
      'Negato da un criterio',
      'Un criterio del tenant o dell’organizzazione vieta l’operazione.',
      'Chiedi a un amministratore del tenant di modificare il criterio.',
    ],
    'not-found': [
      'Non trovato',
      'La risorsa non esiste o appartiene a un tenant che il chiamante non può vedere.',
      'Controlla il percorso e l’identificativo, e che il token appartenga al tenant dell’oggetto.',
    ],
    'method-not-allowed': [
      'Metodo non consentito',
      'La risorsa esiste ma non supporta questo metodo. L’intestazione `Allow` elenca i suoi metodi.',
      'Usa uno dei metodi dell’intestazione `Allow`.',
    ],
    'not-acceptable': [
      'Formato non accettabile',
      'L’intestazione `Accept` esclude tutti i tipi di contenuto di questa operazione.',
      'Invia `Accept: application/json` o nessuna intestazione `Accept`.',
    ],
    'request-timeout': [
      'Tempo della richiesta scaduto',
      'La richiesta non è arrivata completa in tempo.',
      'Controlla la connessione e invia il corpo senza pause.',
    ],
    conflict: [
      'Conflitto',
      'La richiesta contrasta con lo stato attuale, per esempio una chiave già registrata o un `idempotency-key` la cui prima richiesta è ancora in corso.',
      'Rileggi l’oggetto e decidi in base al suo stato attuale. `detail` indica il conflitto.',
    ],
    gone: [
      'Non più disponibile',
      'La risorsa è esistita e non è più disponibile.',
      'Ricomincia: richiedi un nuovo link, codice o oggetto.',
    ],
    'payload-too-large': [
      'Richiesta troppo grande',
      'Il corpo della richiesta supera il limite di questa operazione.',
      'Invia un corpo più piccolo. `/openapi.json` contiene i limiti dell’operazione.',
    ],
    'uri-too-long': [
      'Indirizzo troppo lungo',
      'La destinazione della richiesta supera 16 KiB.',
      'Invia i valori lunghi nel corpo invece che nell’indirizzo.',
    ],
    'unsupported-media-type': [
      'Tipo di contenuto non supportato',
      'Questa operazione non supporta il `Content-Type` o il `Content-Encoding`.',
      'Invia il `Content-Type` che l’operazione indica in `/openapi.json`, senza `Content-Encoding`.',
    ],
    'misdirected-request': [
      'Host errato',
      'Questo servizio non serve l’host della richiesta.',
      'Usa l’host dell’emittente o di un tenant. Operatori: aggiungete l’host a `server.allowed_hosts`.',
    ],
    'unprocessable-content': [
      'Contenuto non elaborabile',
      'La richiesta è ben formata ma non può essere elaborata, per esempio un `idempotency-key` già usato con un altro corpo.',
      'Usa un nuovo `idempotency-key` per una nuova richiesta o correggi ciò che indica `detail`.',
    ],
    'too-early': [
      'Troppo presto',
      'Una prova valida è arrivata prima della sua durata minima.',
      'Conserva la prova e inviala dopo la durata minima.',
    ],
    'rate-limited': [
      'Troppe richieste',
      'Un limite è stato superato. `Retry-After` e `RateLimit` indicano il tempo di attesa, `violated-policies` i nomi dei limiti.',
      'Invia meno richieste. L’intestazione `RateLimit` indica quante ne restano.',
    ],
    'headers-too-large': [
      'Intestazioni troppo grandi',
      'Le intestazioni superano il limite di 64 campi o 16 KiB.',
      'Invia meno intestazioni o più corte.',
    ],
    'server-error': [
      'Errore del server',
      'Si è verificato un errore interno.',
      'Comunica l’identificativo della richiesta (`x-request-id`) all’operatore di questo servizio.',
    ],
    'not-implemented': [
      'Non disponibile',
      'Questa installazione non ha configurato la funzione necessaria.',
      'Chiedi all’operatore di configurarla. `/api/v1/capabilities` elenca ciò che è disponibile.',
    ],
    'bad-gateway': [
      'Risposta errata di un altro server',
      'Un server a monte ha dato una risposta non valida.',
      'Controlla quel server o riprova più tardi.',
    ],
    'service-unavailable': [
      'Servizio non disponibile',
      'Il servizio è in avvio, è sovraccarico o una dipendenza non è disponibile.',
      'Attendi. `/health/ready` indica quando il servizio è pronto.',
    ],
    'gateway-timeout': [
      'Tempo scaduto',
      'La richiesta non è terminata entro il limite di tempo ed è stata annullata.',
      'Riprova. Se succede ancora, chiedi meno alla volta.',
    ],
    'version-not-supported': [
      'Versione di HTTP non supportata',
      'La riga della richiesta non indica una versione di HTTP supportata da questa connessione.',
      'Invia HTTP/1.1, oppure concorda HTTP/2 all’apertura della connessione TLS (ALPN).',
    ],
  },
}
