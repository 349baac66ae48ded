// How a Redisson client is connected.

package holdfast.interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.Codec;
import org.redisson.config.BaseConfig;
import org.redisson.config.Config;

/** Connection makes clients from words. */
final class Connection {
    private Connection() { }

    /**
     * Connects to addresses separated by commas, of a "single" server or of a
     * "cluster". Options follow as name=value: watchdog (ms), sharded (AUTO, ON, OFF),
     * prefix (of all names), codec (a class), pool (connections), subscriptions
     * (connections for them).
     */
    static RedissonClient open(String... words) throws ReflectiveOperationException {
        Map<String, String> options = new HashMap<>();
        for (int i = 2; i < words.length; i++) {
            String[] option = words[i].split("=", 2);
            options.put(option[0], option[1]);
        }
        List<String> addresses = new ArrayList<>();
        for (String address : words[1].split(",")) {
            addresses.add("redis://" + address);
        }
        int pool = Integer.parseInt(options.getOrDefault("pool", "64"));
        int subscriptions = Integer.parseInt(options.getOrDefault("subscriptions", "50"));
        Config config = new Config();
        config.setLockWatchdogTimeout(Long.parseLong(options.getOrDefault("watchdog", "30000")));
        if (options.containsKey("codec")) {
            config.setCodec((Codec) Class.forName(options.get("codec")).getDeclaredConstructor().newInstance());
        }
        BaseConfig<?> servers;
        if (words[0].equals("cluster")) {
            servers = config.useClusterServers().addNodeAddress(addresses.toArray(new String[0]))
                .setMasterConnectionPoolSize(pool).setMasterConnectionMinimumIdleSize(4)
                .setSubscriptionConnectionPoolSize(subscriptions);
            if (options.containsKey("sharded")) {
                Since.shardedSubscriptionMode(servers, options.get("sharded"));
            }
        } else {
            servers = config.useSingleServer().setAddress(addresses.get(0))
                .setConnectionPoolSize(pool).setConnectionMinimumIdleSize(4)
                .setSubscriptionConnectionPoolSize(subscriptions);
        }
        if (options.containsKey("prefix")) {
            Since.prefixNames(servers, options.get("prefix"));
        }
        return Redisson.create(config);
    }
}
