package from;

import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** Sells bolts under a lock of Redisson. */
public class Sell {
    public static void main(String[] args) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + args[0]);
        RedissonClient redisson = Redisson.create(config);
        try {
            for (int i = 0; i < 20; i++) {
                sell(redisson);
            }
        } finally {
            redisson.shutdown();
        }
    }

    /** Takes a bolt from the stock. Two that did so at once would read the same number. */
    static void sell(RedissonClient redisson) {
        RLock lock = redisson.getLock("bolt");
        lock.lock();
        try {
            RBucket<String> stock = redisson.getBucket("stock:bolt", StringCodec.INSTANCE);
            stock.set(String.valueOf(Integer.parseInt(stock.get()) - 1));
        } finally {
            lock.unlock();
        }
    }
}
