// The line protocol: one request a line on standard input, one answer a line on
// standard output.

package holdfast.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.api.RedissonClient;

/**
 * Does with Redisson what its input says, until that ends.
 *
 * <pre>
 * request  NUMBER THREAD CLIENT COMMAND [ARGUMENT]...
 * answer   NUMBER MICROS ok [VALUE]
 *          NUMBER MICROS error CLASS MESSAGE
 * </pre>
 *
 * A lock's owner in Redisson is a thread, so each request names the one that it runs
 * on; requests of one thread run in their order, those of different threads at the
 * same time. MICROS is the wall clock when the command returned, since 1970.
 */
public final class Main {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        if (args.length > 0 && args[0].equals("bench")) {
            Bench.main(Arrays.copyOfRange(args, 1, args.length));
            Runtime.getRuntime().halt(0);
        }
        answer("ready " + RedissonClient.class.getPackage().getImplementationVersion());
        new Main().serve();
        // As if killed: nothing is released, and nobody waits for threads that wait.
        Runtime.getRuntime().halt(0);
    }

    private void serve() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            threads.computeIfAbsent(words[1], name -> Executors.newSingleThreadExecutor())
                .execute(() -> answer(words[0], run(words)));
        }
    }

    private String run(String[] words) {
        try {
            String client = words[2];
            String[] args = Arrays.copyOfRange(words, 4, words.length);
            Object value;
            switch (words[3]) {
                case "connect":
                    clients.put(client, Connection.open(args));
                    return "ok";
                case "close":
                    clients.remove(client).shutdown();
                    return "ok";
                default:
                    value = Commands.run(clients.get(client), words[3], args);
            }
            return value == null ? "ok" : "ok " + value;
        } catch (Throwable thrown) {
            Throwable e = thrown;
            while (e.getCause() != null) {
                e = e.getCause(); // some of Redisson's come within a RedisException
            }
            return "error " + e.getClass().getSimpleName() + " " + String.valueOf(e.getMessage()).replace('\n', ' ');
        }
    }

    private static void answer(String number, String result) {
        answer(number + " " + ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()) + " " + result);
    }

    private static synchronized void answer(String line) {
        OUT.println(line);
        OUT.flush();
    }
}
